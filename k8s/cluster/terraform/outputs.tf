output "kubeconfig" {
  description = "Command that configures kubectl."
  value       = "aws eks update-kubeconfig --name ${aws_eks_cluster.this.name} --region ${var.region}"
}

output "efs_id" {
  description = "File system id of the claim pv-efs."
  value       = aws_efs_file_system.this.id
}

output "fsx_id" {
  description = "File system id of the claim pv-fsx."
  value       = one(aws_fsx_lustre_file_system.this[*].id)
}

output "node_role" {
  description = "IAM role of the nodes, for k8s/cluster/karpenter.yaml."
  value       = aws_iam_role.node.name
}

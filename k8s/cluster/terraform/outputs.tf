output "kubeconfig" {
  description = "The command that gives kubectl access."
  value       = "aws eks update-kubeconfig --name ${aws_eks_cluster.this.name} --region ${var.region}"
}

output "efs_id" {
  description = "The file system of the claim pv-efs."
  value       = aws_efs_file_system.this.id
}

output "fsx_id" {
  description = "The file system of the claim pv-fsx."
  value       = one(aws_fsx_lustre_file_system.this[*].id)
}

output "node_role" {
  description = "The role of all nodes, for k8s/cluster/karpenter.yaml."
  value       = aws_iam_role.node.name
}

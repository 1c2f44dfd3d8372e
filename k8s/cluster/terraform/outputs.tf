output "kubeconfig" {
  description = "Command that configures kubectl."
  value       = "aws eks update-kubeconfig --name ${aws_eks_cluster.this.name} --region ${var.region}"
}

# destroy.sh reads these.
output "cluster_name" {
  description = "Name of the cluster."
  value       = aws_eks_cluster.this.name
}

output "region" {
  description = "Region of the cluster."
  value       = var.region
}

output "kms_key_id" {
  description = "Key that encrypts EFS and the cluster's Secrets."
  value       = aws_kms_key.this.key_id
}

output "cost_usd_per_hour" {
  description = "On-demand price of a node, by instance type of the node groups. Two system nodes always run."
  value       = { for type in distinct(concat(values(local.gpu_nodes)[*].instance_type, [var.system_instance_types[0]])) : type => lookup(local.prices, type, "unknown") }
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

data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

locals {
  policies = "arn:${data.aws_partition.current.partition}:iam::aws:policy"
}

resource "aws_iam_role" "cluster" {
  name = "${var.cluster_name}-cluster"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = ["sts:AssumeRole"], Principal = { Service = "eks.amazonaws.com" } }]
  })
}

resource "aws_iam_role_policy_attachment" "cluster" {
  role       = aws_iam_role.cluster.name
  policy_arn = "${local.policies}/AmazonEKSClusterPolicy"
}

resource "aws_kms_key" "this" {
  description             = "Secrets and EFS of the cluster ${var.cluster_name}"
  enable_key_rotation     = true
  deletion_window_in_days = 7
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "kms:*"
      Resource  = "*"
      Principal = { AWS = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:root" }
    }]
  })
  lifecycle {
    prevent_destroy = true # files of EFS cannot be read without it
  }
}

# EKS would create this log group without a retention, and keep it.
resource "aws_cloudwatch_log_group" "this" {
  #checkov:skip=CKV_AWS_158:CloudWatch encrypts the logs with its own key
  #checkov:skip=CKV_AWS_338:log_retention_days is the user's choice
  name              = "/aws/eks/${var.cluster_name}/cluster"
  retention_in_days = var.log_retention_days
}

resource "aws_eks_cluster" "this" {
  #checkov:skip=CKV_AWS_38:api_access_cidrs rejects 0.0.0.0/0
  #checkov:skip=CKV_AWS_39:this machine installs the cluster's components
  name                      = var.cluster_name
  role_arn                  = aws_iam_role.cluster.arn
  version                   = coalesce(var.k8s_version, local.pins["eks"].version)
  enabled_cluster_log_types = ["api", "audit", "authenticator", "controllerManager", "scheduler"]

  access_config {
    authentication_mode                         = "API"
    bootstrap_cluster_creator_admin_permissions = true
  }
  encryption_config {
    resources = ["secrets"]
    provider {
      key_arn = aws_kms_key.this.arn
    }
  }
  vpc_config {
    subnet_ids              = [for subnet in aws_subnet.private : subnet.id]
    endpoint_private_access = true
    endpoint_public_access  = true
    public_access_cidrs     = var.api_access_cidrs
  }
  depends_on = [aws_iam_role_policy_attachment.cluster, aws_route_table_association.private, aws_cloudwatch_log_group.this]
}

# Karpenter finds the nodes' security group by this tag.
resource "aws_ec2_tag" "discovery" {
  resource_id = aws_eks_cluster.this.vpc_config[0].cluster_security_group_id
  key         = "karpenter.sh/discovery"
  value       = var.cluster_name
}

# EKS's default add-on versions for this version of Kubernetes.
resource "aws_eks_addon" "this" {
  for_each                    = toset(["vpc-cni", "kube-proxy", "coredns", "eks-pod-identity-agent"])
  cluster_name                = aws_eks_cluster.this.name
  addon_name                  = each.key
  resolve_conflicts_on_update = "OVERWRITE"
}

# AWS permissions of pods: one role per service account, through EKS Pod Identity.
locals {
  pod_roles = merge({
    ebs-csi-controller-sa = "${local.policies}/service-role/AmazonEBSCSIDriverPolicy"
    efs-csi-controller-sa = "${local.policies}/service-role/AmazonEFSCSIDriverPolicy"
    fsx-csi-controller-sa = "${local.policies}/AmazonFSxFullAccess"
    },
    var.karpenter_enabled ? { karpenter = aws_iam_policy.karpenter[0].arn } : { cluster-autoscaler = aws_iam_policy.autoscaler[0].arn },
  )
}

resource "aws_iam_role" "pod" {
  for_each = local.pod_roles
  name     = "${var.cluster_name}-${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Principal = { Service = "pods.eks.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "pod" {
  for_each   = local.pod_roles
  role       = aws_iam_role.pod[each.key].name
  policy_arn = each.value
}

resource "aws_eks_pod_identity_association" "this" {
  for_each        = local.pod_roles
  cluster_name    = aws_eks_cluster.this.name
  namespace       = "kube-system"
  service_account = each.key
  role_arn        = aws_iam_role.pod[each.key].arn
}

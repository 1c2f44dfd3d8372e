# Scales nodes with the cluster autoscaler or Karpenter, not both.
resource "aws_iam_policy" "autoscaler" {
  count = var.karpenter_enabled ? 0 : 1
  name  = "${var.cluster_name}-autoscaler"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect = "Allow"
        Action = [
          "autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeAutoScalingInstances",
          "autoscaling:DescribeLaunchConfigurations", "autoscaling:DescribeScalingActivities", "autoscaling:DescribeTags",
          "ec2:DescribeImages", "ec2:DescribeInstanceTypes", "ec2:DescribeLaunchTemplateVersions",
          "ec2:GetInstanceTypesFromInstanceRequirements",
        ]
        Resource = "*"
      },
      {
        Effect   = "Allow"
        Action   = "eks:DescribeNodegroup"
        Resource = "arn:${data.aws_partition.current.partition}:eks:${var.region}:${data.aws_caller_identity.current.account_id}:nodegroup/${var.cluster_name}/*"
      },
      {
        Effect    = "Allow"
        Action    = ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"]
        Resource  = "arn:${data.aws_partition.current.partition}:autoscaling:${var.region}:${data.aws_caller_identity.current.account_id}:autoScalingGroup:*"
        Condition = { StringEquals = { "aws:ResourceTag/eks:cluster-name" = var.cluster_name } }
      },
    ]
  })
}

resource "helm_release" "autoscaler" {
  count      = var.karpenter_enabled ? 0 : 1
  name       = "cluster-autoscaler"
  namespace  = "kube-system"
  repository = local.pins["cluster-autoscaler"].source
  chart      = "cluster-autoscaler"
  version    = local.pins["cluster-autoscaler"].version
  values = [yamlencode({
    awsRegion     = var.region
    autoDiscovery = { clusterName = var.cluster_name }
    rbac          = { serviceAccount = { name = "cluster-autoscaler" } }
    extraArgs     = { "scale-down-unneeded-time" = "10m", "skip-nodes-with-system-pods" = "false" }
  })]
  depends_on = [aws_eks_node_group.system, aws_eks_addon.this, aws_eks_pod_identity_association.this]
}

# The cluster autoscaler derives CPU, memory and GPUs of an empty group from the instance type, and all other resources
# from tags of the Auto Scaling group. EKS copies no tags of a node group to it.
resource "aws_autoscaling_group_tag" "gpu" {
  for_each = merge([for name, resources in local.tagged_resources : {
    for resource, amount in resources : "${name}/${resource}" => { group = name, resource = resource, amount = amount }
  }]...)
  autoscaling_group_name = aws_eks_node_group.gpu[each.value.group].resources[0].autoscaling_groups[0].name
  tag {
    key                 = "k8s.io/cluster-autoscaler/node-template/resources/${each.value.resource}"
    value               = each.value.amount
    propagate_at_launch = false
  }
}

resource "aws_sqs_queue" "karpenter" {
  count                     = var.karpenter_enabled ? 1 : 0
  name                      = var.cluster_name
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "karpenter" {
  count     = var.karpenter_enabled ? 1 : 0
  queue_url = aws_sqs_queue.karpenter[0].url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.karpenter[0].arn
      Principal = { Service = "events.amazonaws.com" }
      Condition = { ArnEquals = { "aws:SourceArn" = [for rule in aws_cloudwatch_event_rule.karpenter : rule.arn] } }
    }]
  })
}

# Interruption events of nodes for Karpenter.
resource "aws_cloudwatch_event_rule" "karpenter" {
  for_each = var.karpenter_enabled ? {
    spot      = { source = ["aws.ec2"], "detail-type" = ["EC2 Spot Instance Interruption Warning"] }
    rebalance = { source = ["aws.ec2"], "detail-type" = ["EC2 Instance Rebalance Recommendation"] }
    state     = { source = ["aws.ec2"], "detail-type" = ["EC2 Instance State-change Notification"] }
    health    = { source = ["aws.health"], "detail-type" = ["AWS Health Event"] }
  } : {}
  name          = "${var.cluster_name}-karpenter-${each.key}"
  event_pattern = jsonencode(each.value)
}

resource "aws_cloudwatch_event_target" "karpenter" {
  for_each = aws_cloudwatch_event_rule.karpenter
  rule     = each.value.name
  arn      = aws_sqs_queue.karpenter[0].arn
}

resource "aws_iam_policy" "karpenter" {
  count = var.karpenter_enabled ? 1 : 0
  name  = "${var.cluster_name}-karpenter"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "Read"
        Effect = "Allow"
        Action = [
          "ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstances", "ec2:DescribeInstanceStatus",
          "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes", "ec2:DescribeLaunchTemplates",
          "ec2:DescribePlacementGroups", "ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets",
          "pricing:GetProducts", "iam:ListInstanceProfiles", "iam:GetInstanceProfile",
        ]
        Resource = "*"
      },
      {
        Sid      = "Launch"
        Effect   = "Allow"
        Action   = ["ec2:RunInstances", "ec2:CreateFleet"]
        Resource = [for kind in ["image", "snapshot", "security-group", "subnet", "capacity-reservation", "placement-group"] : "arn:${data.aws_partition.current.partition}:ec2:${var.region}:*:${kind}/*"]
      },
      {
        Sid       = "LaunchTagged"
        Effect    = "Allow"
        Action    = ["ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:CreateTags"]
        Resource  = [for kind in ["fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request"] : "arn:${data.aws_partition.current.partition}:ec2:${var.region}:*:${kind}/*"]
        Condition = { StringEquals = { "aws:RequestTag/kubernetes.io/cluster/${var.cluster_name}" = "owned" } }
      },
      {
        Sid       = "Own"
        Effect    = "Allow"
        Action    = ["ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateTags", "ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"]
        Resource  = [for kind in ["instance", "launch-template"] : "arn:${data.aws_partition.current.partition}:ec2:${var.region}:*:${kind}/*"]
        Condition = { StringEquals = { "aws:ResourceTag/kubernetes.io/cluster/${var.cluster_name}" = "owned" } }
      },
      {
        Sid      = "InstanceProfiles"
        Effect   = "Allow"
        Action   = ["iam:CreateInstanceProfile", "iam:TagInstanceProfile", "iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"]
        Resource = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:instance-profile/${var.cluster_name}_*"
      },
      {
        Sid       = "PassNodeRole"
        Effect    = "Allow"
        Action    = "iam:PassRole"
        Resource  = aws_iam_role.node.arn
        Condition = { StringEquals = { "iam:PassedToService" = "ec2.amazonaws.com" } }
      },
      {
        Sid      = "Images"
        Effect   = "Allow"
        Action   = "ssm:GetParameter"
        Resource = "arn:${data.aws_partition.current.partition}:ssm:${var.region}::parameter/aws/service/*"
      },
      {
        Sid      = "Cluster"
        Effect   = "Allow"
        Action   = "eks:DescribeCluster"
        Resource = aws_eks_cluster.this.arn
      },
      {
        Sid      = "Interruptions"
        Effect   = "Allow"
        Action   = ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"]
        Resource = aws_sqs_queue.karpenter[0].arn
      },
    ]
  })
}

resource "helm_release" "karpenter" {
  count      = var.karpenter_enabled ? 1 : 0
  name       = "karpenter"
  namespace  = "kube-system"
  repository = local.pins["karpenter"].source
  chart      = "karpenter"
  version    = local.pins["karpenter"].version
  values = [yamlencode({
    settings = {
      clusterName       = var.cluster_name
      interruptionQueue = aws_sqs_queue.karpenter[0].name
      featureGates      = { nodeOverlay = true } # huge pages of nodes with EFA: k8s/cluster/karpenter.yaml
    }
  })]
  depends_on = [aws_eks_node_group.system, aws_eks_addon.this, aws_eks_pod_identity_association.this]
}

resource "aws_iam_role" "node" {
  name = "${var.cluster_name}-node"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = ["sts:AssumeRole"], Principal = { Service = "ec2.amazonaws.com" } }]
  })
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = toset([
    "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly", "AmazonSSMManagedInstanceCore",
  ])
  role       = aws_iam_role.node.name
  policy_arn = "${local.policies}/${each.key}"
}

resource "aws_placement_group" "gpu" {
  name     = var.cluster_name
  strategy = "cluster"
}

# EFA needs self-referencing rules for ingress and egress.
resource "aws_security_group" "efa" {
  name        = "${var.cluster_name}-efa"
  description = "Elastic Fabric Adapters of ${var.cluster_name}"
  vpc_id      = aws_vpc.this.id
}

resource "aws_vpc_security_group_ingress_rule" "efa" {
  security_group_id            = aws_security_group.efa.id
  referenced_security_group_id = aws_security_group.efa.id
  description                  = "EFA among the nodes"
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "efa" {
  security_group_id            = aws_security_group.efa.id
  referenced_security_group_id = aws_security_group.efa.id
  description                  = "EFA among the nodes"
  ip_protocol                  = "-1"
}

locals {
  instance_types = { for row in csvdecode(file("${path.module}/../../instance-types.csv")) : row.instance_type => row }
  prices         = { for row in csvdecode(file("${path.module}/../../instance-prices.csv")) : row.instance_type => "${row.usd_per_hour} (${row.region}, ${row.date})" }
  gpu_nodes      = var.karpenter_enabled ? {} : var.gpu_nodes
  # Interfaces of each group; only the image dtrain-efa uses EFA.
  efa_interfaces = { for name, group in local.gpu_nodes : name => coalesce(group.efa_interfaces,
    local.instance_types[group.instance_type].image == "efa" ? tonumber(local.instance_types[group.instance_type].efa_interfaces) : 0)
  }
  # Resources of each group that its instance type does not imply: EFA devices, and the huge pages of tune.sh.
  huge_pages = regex("vm.nr_hugepages=([0-9]+)", file("${path.module}/../node/tune.sh"))[0]
  tagged_resources = { for name, interfaces in local.efa_interfaces : name => {
    "vpc.amazonaws.com/efa" = tostring(interfaces)
    "hugepages-2Mi"         = "${local.huge_pages * 2}Mi"
  } if interfaces > 0 }
  # EKS appends its own part after these two.
  user_data = join("\n", [
    "MIME-Version: 1.0",
    "Content-Type: multipart/mixed; boundary=\"PART\"",
    "",
    "--PART",
    "Content-Type: text/x-shellscript; charset=\"us-ascii\"",
    "",
    file("${path.module}/../node/tune.sh"),
    "--PART",
    "Content-Type: application/node.eks.aws",
    "",
    file("${path.module}/../node/config.yaml"),
    "--PART--",
    "",
  ])
}

resource "aws_launch_template" "system" {
  name_prefix            = "${var.cluster_name}-system-"
  update_default_version = true
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }
  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size = 80
      volume_type = "gp3"
      encrypted   = true
    }
  }
}

resource "aws_eks_node_group" "system" {
  cluster_name    = aws_eks_cluster.this.name
  node_group_name = "system"
  node_role_arn   = aws_iam_role.node.arn
  subnet_ids      = [for subnet in aws_subnet.private : subnet.id]
  ami_type        = "AL2023_x86_64_STANDARD"
  instance_types  = var.system_instance_types
  launch_template {
    id      = aws_launch_template.system.id
    version = aws_launch_template.system.latest_version
  }
  scaling_config {
    min_size     = 2
    desired_size = 2
    max_size     = 8
  }
  lifecycle {
    ignore_changes = [scaling_config[0].desired_size]
  }
  depends_on = [aws_iam_role_policy_attachment.node]
}

resource "aws_launch_template" "gpu" {
  for_each               = local.gpu_nodes
  name_prefix            = "${var.cluster_name}-${each.key}-"
  update_default_version = true
  user_data              = base64encode(local.user_data)
  vpc_security_group_ids = local.efa_interfaces[each.key] > 0 ? null : [aws_eks_cluster.this.vpc_config[0].cluster_security_group_id]
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }
  placement {
    group_name = aws_placement_group.gpu.name
  }
  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size = each.value.volume_gib
      volume_type = "gp3"
      encrypted   = true
    }
  }
  dynamic "network_interfaces" {
    for_each = range(local.efa_interfaces[each.key])
    content {
      interface_type        = "efa"
      network_card_index    = network_interfaces.value
      device_index          = network_interfaces.value == 0 ? 0 : 1
      delete_on_termination = true
      security_groups       = [aws_eks_cluster.this.vpc_config[0].cluster_security_group_id, aws_security_group.efa.id]
    }
  }
  tag_specifications {
    resource_type = "instance"
    tags          = { Name = "${var.cluster_name}-${each.key}" }
  }
}

resource "aws_eks_node_group" "gpu" {
  for_each        = local.gpu_nodes
  cluster_name    = aws_eks_cluster.this.name
  node_group_name = each.key
  node_role_arn   = aws_iam_role.node.arn
  subnet_ids      = [aws_subnet.private[var.azs[0]].id]
  ami_type        = "AL2023_x86_64_NVIDIA"
  capacity_type   = each.value.spot ? "SPOT" : "ON_DEMAND"
  instance_types  = [each.value.instance_type]
  # With this label the cluster autoscaler waits for the GPUs of a new node.
  labels = { "k8s.amazonaws.com/accelerator" = "nvidia-${lower(local.instance_types[each.value.instance_type].gpu)}" }
  launch_template {
    id      = aws_launch_template.gpu[each.key].id
    version = aws_launch_template.gpu[each.key].latest_version
  }
  scaling_config {
    min_size     = 0
    desired_size = 0
    max_size     = each.value.max_size
  }
  taint {
    key    = "nvidia.com/gpu"
    value  = "present"
    effect = "NO_SCHEDULE"
  }
  node_repair_config {
    enabled = true
  }
  lifecycle {
    ignore_changes = [scaling_config[0].desired_size]
  }
  depends_on = [aws_iam_role_policy_attachment.node]
}

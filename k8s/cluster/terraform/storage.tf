resource "aws_security_group" "storage" {
  name        = "${var.cluster_name}-storage"
  description = "EFS and FSx for Lustre of ${var.cluster_name}"
  vpc_id      = aws_vpc.this.id
}

# NFS for EFS; 988 and 1018 to 1023 for Lustre.
resource "aws_vpc_security_group_ingress_rule" "storage" {
  for_each          = { nfs = [2049, 2049], lustre = [988, 988], lustre-more = [1018, 1023] }
  security_group_id = aws_security_group.storage.id
  description       = "${each.key} from the cluster's network"
  cidr_ipv4         = var.cidr
  ip_protocol       = "tcp"
  from_port         = each.value[0]
  to_port           = each.value[1]
}

resource "aws_vpc_security_group_egress_rule" "storage" {
  security_group_id = aws_security_group.storage.id
  description       = "Lustre's servers among themselves and to clients"
  cidr_ipv4         = var.cidr
  ip_protocol       = "-1"
}

resource "aws_efs_file_system" "this" {
  creation_token   = var.cluster_name
  encrypted        = true
  kms_key_id       = aws_kms_key.this.arn
  performance_mode = "generalPurpose"
  throughput_mode  = "elastic"
  tags             = { Name = var.cluster_name }
  lifecycle {
    prevent_destroy = true # k8s/cluster/destroy.sh keeps or deletes it
  }
}

resource "aws_efs_mount_target" "this" {
  for_each        = aws_subnet.private
  file_system_id  = aws_efs_file_system.this.id
  subnet_id       = each.value.id
  security_groups = [aws_security_group.storage.id]
}

resource "aws_fsx_lustre_file_system" "this" {
  #checkov:skip=CKV_AWS_190:scratch file systems do not support customer managed keys
  count                    = var.fsx_storage_gib > 0 ? 1 : 0
  deployment_type          = "SCRATCH_2"
  file_system_type_version = local.pins["fsx-lustre"].version
  storage_capacity         = var.fsx_storage_gib
  subnet_ids               = [aws_subnet.private[var.azs[0]].id]
  security_group_ids       = [aws_security_group.storage.id]
  tags                     = { Name = var.cluster_name }
}

# Imports new, changed and deleted objects of the bucket, and exports files that jobs write to the bucket. Files that are
# deleted on the file system stay in the bucket, unless asked for.
resource "aws_fsx_data_repository_association" "this" {
  count                            = var.fsx_storage_gib > 0 && var.import_path != null ? 1 : 0
  file_system_id                   = aws_fsx_lustre_file_system.this[0].id
  file_system_path                 = "/"
  data_repository_path             = var.import_path
  batch_import_meta_data_on_create = true
  s3 {
    auto_import_policy {
      events = ["NEW", "CHANGED", "DELETED"]
    }
    auto_export_policy {
      events = concat(["NEW", "CHANGED"], var.fsx_export_deletions ? ["DELETED"] : [])
    }
  }
}

variable "profile" {
  description = "Profile of the AWS CLI; null uses the credentials of the environment."
  type        = string
  default     = null
}

variable "region" {
  description = "AWS region of all resources."
  type        = string
}

variable "cluster_name" {
  description = "Name of the cluster and prefix of all other names."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,30}[a-z0-9]$", var.cluster_name))
    error_message = "Expected at most 32 lower-case letters, digits and hyphens."
  }
}

variable "azs" {
  description = "Availability zones, at least two for the control plane; GPU nodes and FSx are in the first."
  type        = list(string)
  validation {
    condition     = length(var.azs) >= 2 && length(var.azs) <= 3
    error_message = "Expected two or three zones."
  }
}

variable "import_path" {
  description = "s3://BUCKET/PREFIX linked with the FSx file system, with automatic import and export; null for none."
  type        = string
  default     = null
  validation {
    condition     = var.import_path == null || can(regex("^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?$", var.import_path))
    error_message = "import_path: expected s3://BUCKET/PREFIX."
  }
}

variable "k8s_version" {
  description = "Kubernetes version of the control plane and the nodes; null for the one of versions.txt."
  type        = string
  default     = null
}

variable "cidr" {
  description = "CIDR of the VPC. Each zone gets a private /18 and a public /24 subnet."
  type        = string
  default     = "192.168.0.0/16"
}

variable "api_access_cidrs" {
  description = "CIDRs with access to the public API endpoint, including this machine's: 203.0.113.7/32."
  type        = list(string)
  validation {
    condition     = length(var.api_access_cidrs) > 0 && alltrue([for cidr in var.api_access_cidrs : can(cidrhost(cidr, 0)) && !endswith(cidr, "/0")])
    error_message = "Expected CIDRs such as 203.0.113.7/32; the whole internet is not allowed."
  }
}

variable "gpu_nodes" {
  description = "GPU node groups in the first zone and the placement group, scaling from zero. Types: k8s/instance-types.csv."
  type = map(object({
    instance_type  = string
    max_size       = optional(number, 4)
    efa_interfaces = optional(number) # null: as many as jobs use on that type
    spot           = optional(bool, false)
    volume_gib     = optional(number, 200)
  }))
  default = {
    g6e     = { instance_type = "g6e.48xlarge" }
    p5      = { instance_type = "p5.48xlarge" }
    p5en    = { instance_type = "p5en.48xlarge" }
    serving = { instance_type = "g5.xlarge" }
  }
  validation {
    condition     = alltrue([for group in values(var.gpu_nodes) : contains(keys(local.instance_types), group.instance_type)])
    error_message = "Expected one of ${join(" ", keys(local.instance_types))}."
  }
}

variable "system_instance_types" {
  description = "Instance types of the system node group."
  type        = list(string)
  default     = ["m7i.large", "m7a.large", "m6i.large"]
}

variable "fsx_storage_gib" {
  description = "Size of the FSx for Lustre file system in GiB: 1200, or a multiple of 2400; 0 for none."
  type        = number
  default     = 1200
  validation {
    condition     = contains([0, 1200], var.fsx_storage_gib) || var.fsx_storage_gib % 2400 == 0
    error_message = "Expected 0, 1200, or a multiple of 2400."
  }
}

variable "fsx_export_deletions" {
  description = "Whether deleting a file of the FSx file system deletes its object in import_path."
  type        = bool
  default     = false
}

variable "log_retention_days" {
  description = "Retention of the control plane's logs in CloudWatch, in days."
  type        = number
  default     = 30
  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731], var.log_retention_days)
    error_message = "Expected a retention that CloudWatch offers, such as 7, 30 or 365."
  }
}

variable "namespace" {
  description = "Namespace of the jobs and the claims pv-efs and pv-fsx."
  type        = string
  default     = "kubeflow"
}

variable "karpenter_enabled" {
  description = "Karpenter instead of gpu_nodes and the cluster autoscaler: k8s/cluster/karpenter.yaml."
  type        = bool
  default     = false
}

variable "cert_manager_enabled" {
  description = "cert-manager for certificates."
  type        = bool
  default     = false
}

variable "ingress_enabled" {
  description = "Istio with an internal ingress gateway."
  type        = bool
  default     = false
}

variable "login_enabled" {
  description = "Login with Dex and OAuth2 Proxy; first create the Secrets `dex` and `oauth2-proxy` in namespace auth."
  type        = bool
  default     = false
}

variable "trainer_enabled" {
  description = "Kubeflow Trainer v2, which runs TrainJobs."
  type        = bool
  default     = false
}

variable "kueue_enabled" {
  description = "Kueue, which queues jobs."
  type        = bool
  default     = false
}

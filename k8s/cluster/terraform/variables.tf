variable "profile" {
  description = "The profile of the AWS CLI's configuration; null takes the credentials of the environment."
  type        = string
  default     = null
}

variable "region" {
  description = "Where everything is made."
  type        = string
}

variable "cluster_name" {
  description = "What the cluster is called; all other names begin with it."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,30}[a-z0-9]$", var.cluster_name))
    error_message = "A name has small letters, digits and hyphens, 32 at most."
  }
}

variable "azs" {
  description = "Availability zones: two at least for the control plane; GPU nodes and FSx are in the first."
  type        = list(string)
  validation {
    condition     = length(var.azs) >= 2 && length(var.azs) <= 3
    error_message = "Name two or three zones."
  }
}

variable "import_path" {
  description = "s3://BUCKET/PREFIX that the file system of FSx shows, and keeps up to date both ways; null for none."
  type        = string
  default     = null
  validation {
    condition     = var.import_path == null || can(regex("^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?$", var.import_path))
    error_message = "import_path is s3://BUCKET/PREFIX."
  }
}

variable "k8s_version" {
  description = "Kubernetes' version of the control plane and of the nodes."
  type        = string
  default     = "1.35"
}

variable "cidr" {
  description = "Addresses of the network. Each zone gets a private /18 and a public /24 of it."
  type        = string
  default     = "192.168.0.0/16"
}

variable "api_access_cidrs" {
  description = "From which addresses the control plane may be reached over the internet, that of this machine among them: 203.0.113.7/32."
  type        = list(string)
  validation {
    condition     = length(var.api_access_cidrs) > 0 && alltrue([for cidr in var.api_access_cidrs : can(cidrhost(cidr, 0)) && !endswith(cidr, "/0")])
    error_message = "Name networks such as 203.0.113.7/32; the whole internet is not taken."
  }
}

variable "gpu_nodes" {
  description = "Groups of GPU nodes, each in the first zone and the placement group, growing from none."
  type = map(object({
    instance_type  = string
    max_size       = optional(number, 4)
    efa_interfaces = optional(number, 0)
    spot           = optional(bool, false)
    volume_gib     = optional(number, 200)
  }))
  default = {
    p3   = { instance_type = "p3.16xlarge" }
    p3dn = { instance_type = "p3dn.24xlarge", efa_interfaces = 1 }
    g5   = { instance_type = "g5.xlarge" }
  }
}

variable "system_instance_types" {
  description = "Of what the nodes are that run everything but training."
  type        = list(string)
  default     = ["m7i.large", "m7a.large", "m6i.large"]
}

variable "fsx_storage_gib" {
  description = "Size of the file system of FSx for Lustre: 1200, or a multiple of 2400. 0 makes none."
  type        = number
  default     = 1200
  validation {
    condition     = contains([0, 1200], var.fsx_storage_gib) || var.fsx_storage_gib % 2400 == 0
    error_message = "The size is 0, 1200, or a multiple of 2400."
  }
}

variable "namespace" {
  description = "Where the claims pv-efs and pv-fsx are made, and jobs run."
  type        = string
  default     = "kubeflow"
}

variable "karpenter_enabled" {
  description = "Karpenter makes GPU nodes in place of gpu_nodes and the cluster autoscaler: k8s/cluster/karpenter.yaml."
  type        = bool
  default     = false
}

variable "cert_manager_enabled" {
  description = "Certificates: cert-manager."
  type        = bool
  default     = false
}

variable "ingress_enabled" {
  description = "Ingress: Istio, with a gateway that only the network of the cluster reaches."
  type        = bool
  default     = false
}

variable "login_enabled" {
  description = "Login: dex and oauth2-proxy, configured by the secrets `dex` and `oauth2-proxy` of the namespace auth, which you make."
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

terraform {
  required_version = ">= 1.11, < 2.0"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "6.69.1"
    }
    helm = {
      source  = "hashicorp/helm"
      version = "3.3.0"
    }
  }
}

# Versions and repositories of the rows of versions.txt, by component.
locals {
  versions_file = file("${path.module}/../../versions.txt")
  pins = {
    for row in regexall("(?m)^[a-z]+ +(\\S+) +(\\S+) +\\S+ +(\\S+)", local.versions_file) :
    row[0] => { version = row[1], source = row[2] }
  }
}

provider "aws" {
  profile = var.profile
  region  = var.region
  default_tags {
    tags = { "dtrain-cluster" = var.cluster_name }
  }
}

# The token is requested on demand and not written to the state.
provider "helm" {
  kubernetes = {
    host                   = aws_eks_cluster.this.endpoint
    cluster_ca_certificate = base64decode(aws_eks_cluster.this.certificate_authority[0].data)
    exec = {
      api_version = "client.authentication.k8s.io/v1"
      command     = "aws"
      args        = ["eks", "get-token", "--cluster-name", var.cluster_name, "--region", var.region]
    }
  }
}

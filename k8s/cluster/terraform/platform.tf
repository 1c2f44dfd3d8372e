# MPI Operator, device plugins and CSI drivers, installed by k8s/cluster/install.sh. A separate kubeconfig leaves the
# user's unchanged.
resource "terraform_data" "components" {
  triggers_replace = [sha256(join("\n", regexall("(?m)^manifest .*$", local.versions_file))), aws_eks_cluster.this.arn]
  provisioner "local-exec" {
    command     = <<-SH
      set -eu
      KUBECONFIG=$(mktemp)
      export KUBECONFIG
      trap 'rm -f "$KUBECONFIG"' EXIT
      aws eks update-kubeconfig --name "$CLUSTER" --region "$REGION" >/dev/null
      "$INSTALL"
    SH
    interpreter = ["bash", "-c"]
    environment = merge(
      { CLUSTER = aws_eks_cluster.this.name, REGION = var.region, INSTALL = "${path.module}/../install.sh" },
      var.profile == null ? {} : { AWS_PROFILE = var.profile },
    )
  }
  depends_on = [aws_eks_node_group.system, aws_eks_addon.this, aws_eks_pod_identity_association.this]
}

# Claims of the jobs; files are kept when claims are deleted.
resource "helm_release" "pv_efs" {
  name             = "pv-efs"
  namespace        = var.namespace
  create_namespace = true
  chart            = "${path.module}/../../charts/pv-efs"
  values           = [yamlencode({ fs_id = aws_efs_file_system.this.id })]
  depends_on       = [terraform_data.components, aws_efs_mount_target.this]
}

resource "helm_release" "pv_fsx" {
  count            = var.fsx_storage_gib > 0 ? 1 : 0
  name             = "pv-fsx"
  namespace        = var.namespace
  create_namespace = true
  chart            = "${path.module}/../../charts/pv-fsx"
  values = [yamlencode({
    fs_id      = aws_fsx_lustre_file_system.this[0].id
    dns_name   = aws_fsx_lustre_file_system.this[0].dns_name
    region     = var.region
    mount_name = aws_fsx_lustre_file_system.this[0].mount_name
    storage    = "${var.fsx_storage_gib}Gi"
  })]
  depends_on = [terraform_data.components]
}

locals {
  # Optional upstream charts, each enabled by a variable. Charts of one component are installed in order. `pin` names the
  # row of versions.txt with the version and the repository.
  charts = {
    cert-manager = {
      enabled = var.cert_manager_enabled, order = 1, namespace = "cert-manager", pin = "cert-manager"
      chart   = "cert-manager", values = { crds = { enabled = true } }
    }
    istio-base = {
      enabled = var.ingress_enabled, order = 1, namespace = "istio-system", pin = "istio"
      chart   = "base", values = {}
    }
    istiod = { # docker.io: the charts' default registry closes in December 2026
      enabled = var.ingress_enabled, order = 2, namespace = "istio-system", pin = "istio"
      chart   = "istiod", values = { global = { hub = "docker.io/istio" } }
    }
    istio-ingressgateway = {
      enabled = var.ingress_enabled, order = 3, namespace = "istio-ingress", pin = "istio"
      chart   = "gateway"
      values = { service = { annotations = {
        "service.beta.kubernetes.io/aws-load-balancer-type"     = "nlb"
        "service.beta.kubernetes.io/aws-load-balancer-internal" = "true"
      } } }
    }
    dex = {
      enabled = var.login_enabled, order = 2, namespace = "auth", pin = "dex"
      chart   = "dex", values = { configSecret = { create = false, name = "dex" } }
    }
    oauth2-proxy = {
      enabled = var.login_enabled, order = 3, namespace = "auth", pin = "oauth2-proxy"
      chart   = "oauth2-proxy"
      values  = { config = { existingSecret = "oauth2-proxy" } }
    }
    kubeflow-trainer = {
      enabled = var.trainer_enabled, order = 2, namespace = "kubeflow-system", pin = "kubeflow-trainer"
      chart   = "kubeflow-trainer", values = {}
    }
    kueue = {
      enabled = var.kueue_enabled, order = 2, namespace = "kueue-system", pin = "kueue"
      chart   = "kueue", values = {}
    }
  }
}

resource "helm_release" "first" {
  for_each         = { for name, one in local.charts : name => one if one.enabled && one.order == 1 }
  name             = each.key
  namespace        = each.value.namespace
  create_namespace = true
  repository       = local.pins[each.value.pin].source
  chart            = each.value.chart
  version          = local.pins[each.value.pin].version
  values           = [yamlencode(each.value.values)]
  depends_on       = [terraform_data.components]
}

resource "helm_release" "second" {
  for_each         = { for name, one in local.charts : name => one if one.enabled && one.order == 2 }
  name             = each.key
  namespace        = each.value.namespace
  create_namespace = true
  repository       = local.pins[each.value.pin].source
  chart            = each.value.chart
  version          = local.pins[each.value.pin].version
  values           = [yamlencode(each.value.values)]
  take_ownership   = each.key == "kubeflow-trainer" # Trainer 2.2 installed its CRDs outside of the release
  depends_on       = [helm_release.first]
}

resource "helm_release" "third" {
  for_each         = { for name, one in local.charts : name => one if one.enabled && one.order == 3 }
  name             = each.key
  namespace        = each.value.namespace
  create_namespace = true
  repository       = local.pins[each.value.pin].source
  chart            = each.value.chart
  version          = local.pins[each.value.pin].version
  values           = [yamlencode(each.value.values)]
  depends_on       = [helm_release.second]
}

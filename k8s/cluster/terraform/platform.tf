# MPI Operator, device plugins and CSI drivers, installed by k8s/cluster/install.sh. A separate kubeconfig leaves the
# user's unchanged.
resource "terraform_data" "components" {
  triggers_replace = [filesha256("${path.module}/../components.txt"), aws_eks_cluster.this.arn]
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
  # Optional upstream charts, each enabled by a variable. Charts of one component are installed in order.
  charts = {
    cert-manager = {
      enabled    = var.cert_manager_enabled, order = 1, namespace = "cert-manager", version = "v1.20.2"
      repository = "https://charts.jetstack.io", chart = "cert-manager", values = { crds = { enabled = true } }
    }
    istio-base = {
      enabled    = var.ingress_enabled, order = 1, namespace = "istio-system", version = "1.30.1"
      repository = "https://istio-release.storage.googleapis.com/charts", chart = "base", values = {}
    }
    istiod = {
      enabled    = var.ingress_enabled, order = 2, namespace = "istio-system", version = "1.30.1"
      repository = "https://istio-release.storage.googleapis.com/charts", chart = "istiod", values = {}
    }
    istio-ingressgateway = {
      enabled    = var.ingress_enabled, order = 3, namespace = "istio-ingress", version = "1.30.1"
      repository = "https://istio-release.storage.googleapis.com/charts", chart = "gateway"
      values = { service = { annotations = {
        "service.beta.kubernetes.io/aws-load-balancer-type"     = "nlb"
        "service.beta.kubernetes.io/aws-load-balancer-internal" = "true"
      } } }
    }
    dex = {
      enabled    = var.login_enabled, order = 2, namespace = "auth", version = "0.24.0"
      repository = "https://charts.dexidp.io", chart = "dex", values = { configSecret = { create = false, name = "dex" } }
    }
    oauth2-proxy = {
      enabled    = var.login_enabled, order = 3, namespace = "auth", version = "10.7.0"
      repository = "https://oauth2-proxy.github.io/manifests", chart = "oauth2-proxy"
      values     = { config = { existingSecret = "oauth2-proxy" } }
    }
    kubeflow-trainer = {
      enabled    = var.trainer_enabled, order = 2, namespace = "kubeflow-system", version = "2.2.0"
      repository = "oci://ghcr.io/kubeflow/charts", chart = "kubeflow-trainer", values = {}
    }
    kueue = {
      enabled    = var.kueue_enabled, order = 2, namespace = "kueue-system", version = "0.19.4"
      repository = "oci://registry.k8s.io/kueue/charts", chart = "kueue", values = {}
    }
  }
}

resource "helm_release" "first" {
  for_each         = { for name, one in local.charts : name => one if one.enabled && one.order == 1 }
  name             = each.key
  namespace        = each.value.namespace
  create_namespace = true
  repository       = each.value.repository
  chart            = each.value.chart
  version          = each.value.version
  values           = [yamlencode(each.value.values)]
  depends_on       = [terraform_data.components]
}

resource "helm_release" "second" {
  for_each         = { for name, one in local.charts : name => one if one.enabled && one.order == 2 }
  name             = each.key
  namespace        = each.value.namespace
  create_namespace = true
  repository       = each.value.repository
  chart            = each.value.chart
  version          = each.value.version
  values           = [yamlencode(each.value.values)]
  depends_on       = [helm_release.first]
}

resource "helm_release" "third" {
  for_each         = { for name, one in local.charts : name => one if one.enabled && one.order == 3 }
  name             = each.key
  namespace        = each.value.namespace
  create_namespace = true
  repository       = each.value.repository
  chart            = each.value.chart
  version          = each.value.version
  values           = [yamlencode(each.value.values)]
  depends_on       = [helm_release.second]
}

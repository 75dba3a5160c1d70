# A GPU pool on EKS: nodes that scale from nothing, pods with roles of their own, secrets under a key of the account.

locals {
  pool     = length(var.subnets) > 0 ? 1 : 0
  policies = "arn:aws:iam::aws:policy"
}

resource "aws_kms_key" "cluster" {
  count                   = local.pool
  description             = "Secrets of the cluster ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
}

resource "aws_iam_role" "cluster" {
  count = local.pool
  name  = "${var.name}-cluster"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "eks.amazonaws.com" }, Action = "sts:AssumeRole" }]
  })
}

resource "aws_iam_role_policy_attachment" "cluster" {
  count      = local.pool
  role       = aws_iam_role.cluster[0].name
  policy_arn = "${local.policies}/AmazonEKSClusterPolicy"
}

resource "aws_eks_cluster" "this" {
  count                     = local.pool
  name                      = "${var.name}-pool"
  role_arn                  = aws_iam_role.cluster[0].arn
  enabled_cluster_log_types = ["api", "audit", "authenticator"]

  access_config {
    authentication_mode                         = "API"
    bootstrap_cluster_creator_admin_permissions = false
  }
  vpc_config {
    subnet_ids              = var.subnets
    endpoint_private_access = true
    endpoint_public_access  = length(var.api_networks) > 0
    public_access_cidrs     = length(var.api_networks) > 0 ? var.api_networks : null
  }
  encryption_config {
    resources = ["secrets"]
    provider { key_arn = aws_kms_key.cluster[0].arn }
  }
  depends_on = [aws_iam_role_policy_attachment.cluster]
}

resource "aws_eks_access_entry" "admin" {
  for_each      = local.pool > 0 ? var.admins : []
  cluster_name  = aws_eks_cluster.this[0].name
  principal_arn = each.key
}

resource "aws_eks_access_policy_association" "admin" {
  for_each      = aws_eks_access_entry.admin
  cluster_name  = each.value.cluster_name
  principal_arn = each.key
  policy_arn    = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
  access_scope { type = "cluster" }
}

resource "aws_iam_role" "node" {
  count = local.pool
  name  = "${var.name}-node"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "ec2.amazonaws.com" }, Action = "sts:AssumeRole" }]
  })
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each   = local.pool > 0 ? toset(["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"]) : []
  role       = aws_iam_role.node[0].name
  policy_arn = "${local.policies}/${each.key}"
}

# Pods reach no credentials of their node: the answer of the metadata service ends after one hop.
resource "aws_launch_template" "node" {
  for_each = local.pool > 0 ? { system = 50, gpu = 200 } : {}
  name     = "${var.name}-${each.key}"
  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }
  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size = each.value
      volume_type = "gp3"
      encrypted   = true
    }
  }
}

resource "aws_eks_node_group" "system" {
  count           = local.pool
  cluster_name    = aws_eks_cluster.this[0].name
  node_group_name = "system"
  node_role_arn   = aws_iam_role.node[0].arn
  subnet_ids      = var.subnets
  ami_type        = "AL2023_x86_64_STANDARD"
  instance_types  = ["m7i.large"]
  launch_template {
    id      = aws_launch_template.node["system"].id
    version = aws_launch_template.node["system"].latest_version
  }
  scaling_config {
    desired_size = 2
    min_size     = 2
    max_size     = 3
  }
  depends_on = [aws_iam_role_policy_attachment.node]
}

resource "aws_eks_node_group" "gpu" {
  count           = local.pool
  cluster_name    = aws_eks_cluster.this[0].name
  node_group_name = "gpu"
  node_role_arn   = aws_iam_role.node[0].arn
  subnet_ids      = var.subnets
  # It has NVIDIA's driver; the device plugin comes with the chart's prerequisites.
  ami_type       = "AL2023_x86_64_NVIDIA"
  instance_types = [var.gpu.type]
  labels         = { "auricle/pool" = var.name }
  taint {
    key    = "nvidia.com/gpu"
    value  = "present"
    effect = "NO_SCHEDULE"
  }
  launch_template {
    id      = aws_launch_template.node["gpu"].id
    version = aws_launch_template.node["gpu"].latest_version
  }
  scaling_config {
    desired_size = var.gpu.min
    min_size     = var.gpu.min
    max_size     = var.gpu.max
  }
  # The autoscaler decides.
  lifecycle { ignore_changes = [scaling_config[0].desired_size] }
  depends_on = [aws_iam_role_policy_attachment.node]
}

resource "aws_iam_role" "volumes" {
  count              = local.pool
  name               = "${var.name}-volumes"
  assume_role_policy = jsonencode({ Version = "2012-10-17", Statement = local.pods })
}

resource "aws_iam_role_policy_attachment" "volumes" {
  count      = local.pool
  role       = aws_iam_role.volumes[0].name
  policy_arn = "${local.policies}/service-role/AmazonEBSCSIDriverPolicy"
}

resource "aws_eks_addon" "this" {
  for_each     = local.pool > 0 ? toset(["vpc-cni", "kube-proxy", "coredns", "eks-pod-identity-agent", "aws-ebs-csi-driver"]) : []
  cluster_name = aws_eks_cluster.this[0].name
  addon_name   = each.key
  dynamic "pod_identity_association" {
    for_each = each.key == "aws-ebs-csi-driver" ? [1] : []
    content {
      role_arn        = aws_iam_role.volumes[0].arn
      service_account = "ebs-csi-controller-sa"
    }
  }
  depends_on = [aws_eks_node_group.system]
}

resource "aws_eks_pod_identity_association" "agent" {
  count           = local.pool
  cluster_name    = aws_eks_cluster.this[0].name
  namespace       = var.service_account.namespace
  service_account = var.service_account.name
  role_arn        = aws_iam_role.agent.arn
}

resource "aws_eks_pod_identity_association" "keda" {
  count           = local.pool
  cluster_name    = aws_eks_cluster.this[0].name
  namespace       = "keda"
  service_account = "keda-operator"
  role_arn        = aws_iam_role.keda.arn
}

output "agent_role" {
  description = "AWS_ROLE_ARN of agents on AKS."
  value       = aws_iam_role.agent.arn
}

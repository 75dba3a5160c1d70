# Rights on the queues. Agents take jobs; functions create and send, and read dead letters; KEDA counts.

locals {
  take = [{
    Effect   = "Allow"
    Action   = ["sqs:GetQueueUrl", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]
    Resource = local.all_queues
    }, {
    # Dead letters are for the functions' replay.
    Effect   = "Deny"
    Action   = ["sqs:ReceiveMessage", "sqs:DeleteMessage"]
    Resource = local.dead_queues
  }]
  count = [{
    Effect   = "Allow"
    Action   = ["sqs:GetQueueUrl", "sqs:GetQueueAttributes"]
    Resource = local.all_queues
  }]
  send = [{
    Effect   = "Allow"
    Action   = ["sqs:CreateQueue", "sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:SendMessage"]
    Resource = local.all_queues
    }, {
    Effect   = "Allow"
    Action   = ["sqs:ReceiveMessage", "sqs:DeleteMessage"]
    Resource = local.dead_queues
    }, {
    # The action knows no resource.
    Effect   = "Allow"
    Action   = ["sqs:ListQueues"]
    Resource = "*"
  }]

  pods = [{
    Effect    = "Allow"
    Principal = { Service = "pods.eks.amazonaws.com" }
    Action    = ["sts:AssumeRole", "sts:TagSession"]
  }]
  subject = "system:serviceaccount:${var.service_account.namespace}:${var.service_account.name}"
  # Agents on AKS show the token of their service account.
  aks = [for issuer in var.aks_issuers : {
    Effect    = "Allow"
    Principal = { Federated = aws_iam_openid_connect_provider.aks[issuer].arn }
    Action    = ["sts:AssumeRoleWithWebIdentity"]
    Condition = { StringEquals = { "${issuer}:sub" = local.subject, "${issuer}:aud" = "sts.amazonaws.com" } }
  }]
}

resource "aws_iam_openid_connect_provider" "aks" {
  for_each       = var.aks_issuers
  url            = "https://${each.key}"
  client_id_list = ["sts.amazonaws.com"]
}

resource "aws_iam_role" "agent" {
  name               = "${var.name}-agent"
  assume_role_policy = jsonencode({ Version = "2012-10-17", Statement = concat(local.pods, local.aks) })
}

resource "aws_iam_role_policy" "agent" {
  name   = "jobs"
  role   = aws_iam_role.agent.id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.take })
}

resource "aws_iam_role" "keda" {
  name               = "${var.name}-keda"
  assume_role_policy = jsonencode({ Version = "2012-10-17", Statement = local.pods })
}

resource "aws_iam_role_policy" "keda" {
  name   = "count"
  role   = aws_iam_role.keda.id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.count })
}

# The functions run on Azure and hold a key of this user. The key is made by hand, so that no state file has it.
resource "aws_iam_user" "functions" {
  name = "${var.name}-functions"
}

resource "aws_iam_user_policy" "functions" {
  name   = "jobs"
  user   = aws_iam_user.functions.name
  policy = jsonencode({ Version = "2012-10-17", Statement = local.send })
}

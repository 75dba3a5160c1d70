# Job queues, as functions/store/jobs.ts names and sets them: it uses the ones that exist and creates the others.
# A message names work and holds no content, so the keys of SQS encrypt it.

locals {
  # A model's name as far as a queue may bear it, and ten digits of its SHA-256.
  words = { for model in var.models : model => format(
    "%s-%s", substr(replace(model, "/[^A-Za-z0-9_-]/", "_"), 0, 24), substr(sha256(model), 0, 10)
  ) }
  # Queues of jobs by zone and model, and of jobs for pools without a GPU.
  queues = merge([for zone in var.zones : merge([for word in values(local.words) : {
    "${var.jobs_queue}-${zone}-${word}"       = zone
    "${var.jobs_queue}-${zone}-${word}-light" = zone
  }]...)]...)
  account = data.aws_caller_identity.current.account_id
  # Every queue of this deployment, those that the functions create included.
  all_queues  = [for zone in var.zones : "arn:aws:sqs:${var.region}:${local.account}:${var.jobs_queue}-${zone}-*"]
  dead_queues = [for zone in var.zones : "arn:aws:sqs:${var.region}:${local.account}:${var.jobs_queue}-${zone}-dlq"]
}

resource "aws_sqs_queue" "dead" {
  for_each                  = var.zones
  name                      = "${var.jobs_queue}-${each.key}-dlq"
  message_retention_seconds = 345600
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue" "jobs" {
  for_each                   = local.queues
  name                       = each.key
  visibility_timeout_seconds = 60
  message_retention_seconds  = 345600
  sqs_managed_sse_enabled    = true
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead[each.value].arn
    maxReceiveCount     = 5
  })
}

# Calls without TLS are refused.
resource "aws_sqs_queue_policy" "tls" {
  for_each  = merge(aws_sqs_queue.jobs, aws_sqs_queue.dead)
  queue_url = each.value.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Deny"
      Principal = "*"
      Action    = "sqs:*"
      Resource  = each.value.arn
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}

# `terraform test`: a plan without an account. `npm run test:cloud` compares it with the code.

mock_provider "aws" {}

variables {
  name         = "tst"
  region       = "eu-west-1"
  zones        = ["eu", "us"]
  models       = ["reference-en", "acme/voice 2: a long name of a model"]
  subnets      = ["subnet-1", "subnet-2"]
  api_networks = ["203.0.113.0/24"]
  admins       = ["arn:aws:iam::123456789012:role/operator"]
  aks_issuers  = ["westeurope.oic.prod-aks.azure.com/tenant/cluster"]
}

run "whole" {
  command = plan
}

run "queues_alone" {
  command = plan
  variables { subnets = [] }
  assert {
    condition     = length(aws_eks_cluster.this) == 0 && length(aws_sqs_queue.jobs) == 8
    error_message = "Without subnets there are queues and roles only."
  }
}

run "open_api_server" {
  command = plan
  variables { api_networks = ["0.0.0.0/0"] }
  expect_failures = [var.api_networks]
}

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

provider "aws" {
  region = var.region
  default_tags { tags = { system = "auricle", environment = var.name } }
}

variable "name" {
  description = "Prefix of every name: the environment, for example prd."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.name))
    error_message = "2 to 20 characters: small letters, digits, hyphens."
  }
}

variable "region" {
  description = "Region of queues and pool: SQS_REGION of functions and agents."
  type        = string
}

variable "zones" {
  description = "Residency zones: ZONES of the functions."
  type        = set(string)
}

variable "models" {
  description = "Models with uploads or text projects. The functions create the queues of others with their first job."
  type        = set(string)
  default     = []
}

variable "jobs_queue" {
  description = "Prefix of queue names: JOBS_QUEUE of the functions, AURICLE_JOBS_QUEUE of the agents."
  type        = string
  default     = "jobs"
}

variable "subnets" {
  description = "Private subnets of the pool in two availability zones at least, with a way out. Empty: no pool."
  type        = list(string)
  default     = []
}

variable "api_networks" {
  description = "Networks that reach the API server of the cluster, as CIDR."
  type        = list(string)
  default     = []
  validation {
    condition     = !contains(var.api_networks, "0.0.0.0/0")
    error_message = "The API server is not open to the internet."
  }
}

variable "admins" {
  description = "ARNs of roles that administer the cluster."
  type        = set(string)
  default     = []
}

variable "gpu" {
  description = "Type of the GPU nodes, and how many there are at least and at most. Quota for it must exist."
  type        = object({ type = string, min = number, max = number })
  default     = { type = "g6.2xlarge", min = 0, max = 4 }
}

variable "aks_issuers" {
  description = "OIDC issuers of AKS clusters whose agents take jobs, without https://."
  type        = set(string)
  default     = []
}

variable "service_account" {
  description = "Namespace and name of the agents' service account."
  type        = object({ namespace = string, name = string })
  default     = { namespace = "auricle", name = "auricle-agent" }
}

data "aws_caller_identity" "current" {}

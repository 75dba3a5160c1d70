// Containers, tables and the queue of the data account beside those of the audit log (audit/storage.bicep),
// and its connection string as a secret of the vault. functions/STORAGE.md says what each of them holds.
param account string
param vault string

@description('Principal id of the identity of the functions.')
param functions string

var blobOwner = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b' // Storage Blob Data Owner: also signs addresses
var queueContributor = '974c5e8b-45b9-4653-ba55-5f855dd0fb88' // Storage Queue Data Contributor
var tableContributor = '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3' // Storage Table Data Contributor
var secretsUser = '4633458b-17de-408a-b874-0445c86b69e6' // Key Vault Secrets User

resource storage 'Microsoft.Storage/storageAccounts@2024-01-01' existing = {
  name: account
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2024-01-01' existing = {
  parent: storage
  name: 'default'
}

resource containers 'Microsoft.Storage/storageAccounts/blobServices/containers@2024-01-01' = [
  for name in ['uploads', 'outcomes', 'models', 'model-uploads']: {
    parent: blobs
    name: name
    properties: { publicAccess: 'None' }
  }
]

resource tableService 'Microsoft.Storage/storageAccounts/tableServices@2024-01-01' = {
  parent: storage
  name: 'default'
}

resource tables 'Microsoft.Storage/storageAccounts/tableServices/tables@2024-01-01' = [
  for name in ['uploads', 'exports', 'auditindex', 'models']: {
    parent: tableService
    name: name
  }
]

resource queueService 'Microsoft.Storage/storageAccounts/queueServices@2024-01-01' = {
  parent: storage
  name: 'default'
}

resource notices 'Microsoft.Storage/storageAccounts/queueServices/queues@2024-01-01' = {
  parent: queueService
  name: 'upload-notices'
}

resource keyVault 'Microsoft.KeyVault/vaults@2023-07-01' existing = {
  name: vault
}

// The log's container is locked: with these roles, too, nothing in it is changed or deleted.
resource storageRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in [blobOwner, queueContributor, tableContributor]: {
    name: guid(storage.id, functions, role)
    scope: storage
    properties: {
      principalId: functions
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    }
  }
]

resource mayRead 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(keyVault.id, functions, 'secrets')
  scope: keyVault
  properties: {
    principalId: functions
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', secretsUser)
  }
}

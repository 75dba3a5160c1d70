// Containers, tables and the queue of the data account beside those of the audit log (audit/storage.bicep),
// and its connection string as a secret of the vault. functions/STORAGE.md says what each of them holds.
param account string
param vault string

@description('Principal id of the identity that reads the secrets of the vault.')
param reader string

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

// Written here, so that the account's key is in no output, file or shell history.
resource connection 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = {
  parent: keyVault
  name: 'STORAGE-CONNECTION'
  properties: {
    value: join(
      [
        'DefaultEndpointsProtocol=https'
        'AccountName=${account}'
        'AccountKey=${storage.listKeys().keys[0].value}'
        'EndpointSuffix=${environment().suffixes.storage}'
      ],
      ';'
    )
  }
}

resource mayRead 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(keyVault.id, reader, 'secrets')
  scope: keyVault
  properties: {
    principalId: reader
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', secretsUser)
  }
}

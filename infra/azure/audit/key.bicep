// The key of the audit logs that hardware keeps: a P-256 key in a vault of the premium tier, and who may sign with it.
//
//   az deployment group create --resource-group RG --template-file infra/azure/audit/key.bicep \
//     --parameters vault=NAME signer=OBJECT-ID
//
// `signer` is the identity of the functions. The outputs are what AUDIT_VAULT_KEY says: the id of the version, and the
// numbers of its public half. A second deployment makes no second version: a key that is there stays as it is.

@minLength(3)
@maxLength(24)
param vault string
param location string = resourceGroup().location

@description('Object id of the managed identity that signs checkpoints.')
param signer string

var cryptoUser = '12338af0-0e69-4776-bea7-57ae8d297424' // Key Vault Crypto User: may read public keys, sign and verify

resource store 'Microsoft.KeyVault/vaults@2023-07-01' = {
  name: vault
  location: location
  properties: {
    tenantId: subscription().tenantId
    // Hardware keys need it.
    sku: { family: 'A', name: 'premium' }
    enableRbacAuthorization: true
    // A key that somebody deletes can be had back for 90 days, and nobody can end that time early.
    enableSoftDelete: true
    softDeleteRetentionInDays: 90
    enablePurgeProtection: true
  }
}

resource key 'Microsoft.KeyVault/vaults/keys@2023-07-01' = {
  parent: store
  name: 'audit-log'
  properties: {
    kty: 'EC-HSM'
    curveName: 'P-256'
    // Only checkpoints: no certificate, no token, no other key is made with it.
    keyOps: ['sign', 'verify']
    attributes: { enabled: true, exportable: false }
  }
}

// Of this key only, whatever else the vault may hold.
resource maySign 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(key.id, signer, 'sign')
  scope: key
  properties: {
    principalId: signer
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', cryptoUser)
  }
}

output id string = key.properties.keyUriWithVersion

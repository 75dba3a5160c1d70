// The functions app on Flex Consumption, and the account of its host. Secrets are references to the vault.
param name string
param location string

@description('Name of the user-assigned identity that the app runs as.')
param identity string
param vault string

@description('Name of the data account, which the identity reaches without a key.')
param account string

@secure()
param settings string

@description('Connection string of Application Insights; the identity authenticates.')
param insights string
param alwaysReady int
param instancesMax int

@description('Settings that are secrets of the vault, each under its name with - for _ (../KEYS.md).')
param secrets array = [
  'SERVICE_KEY'
  'WEBHOOK_KEY'
  'AUDIT_KEY'
  'AUDIT_SIDECAR_KEY'
  'AWS_ACCESS_KEY_ID'
  'AWS_SECRET_ACCESS_KEY'
]

var blobOwner = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b' // Storage Blob Data Owner: leases of timers, package
var queueContributor = '974c5e8b-45b9-4653-ba55-5f855dd0fb88' // Storage Queue Data Contributor: retries
var tableContributor = '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3' // Storage Table Data Contributor: diagnostics

var suffix = environment().suffixes.storage
var vaultUrl = 'https://${vault}${environment().suffixes.keyvaultDns}/secrets'
var references = toObject(
  secrets,
  one => one,
  one => '@Microsoft.KeyVault(SecretUri=${vaultUrl}/${replace(one, '_', '-')})'
)

// Lines NAME=value; the value may hold further signs of equality. Empty values and comments are left out.
var lines = filter(
  split(settings, '\n'),
  line => contains(line, '=') && !startsWith(line, '#') && !endsWith(line, '=')
)
var plain = toObject(lines, line => split(line, '=')[0], line => substring(line, indexOf(line, '=') + 1))

resource runsAs 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' existing = {
  name: identity
}

resource host 'Microsoft.Storage/storageAccounts@2024-01-01' = {
  name: '${name}host'
  location: location
  kind: 'StorageV2'
  sku: { name: 'Standard_LRS' }
  properties: {
    allowBlobPublicAccess: false
    allowSharedKeyAccess: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
  }
}

resource hostBlobs 'Microsoft.Storage/storageAccounts/blobServices@2024-01-01' = {
  parent: host
  name: 'default'
}

resource package 'Microsoft.Storage/storageAccounts/blobServices/containers@2024-01-01' = {
  parent: hostBlobs
  name: 'package'
  properties: { publicAccess: 'None' }
}

resource hostRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in [blobOwner, queueContributor, tableContributor]: {
    name: guid(host.id, identity, role)
    scope: host
    properties: {
      principalId: runsAs.properties.principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    }
  }
]

resource plan 'Microsoft.Web/serverfarms@2025-03-01' = {
  name: '${name}-plan'
  location: location
  kind: 'functionapp'
  sku: { tier: 'FlexConsumption', name: 'FC1' }
  properties: { reserved: true }
}

resource app 'Microsoft.Web/sites@2025-03-01' = {
  name: '${name}-functions'
  location: location
  kind: 'functionapp,linux'
  dependsOn: [hostRoles]
  identity: { type: 'UserAssigned', userAssignedIdentities: { '${runsAs.id}': {} } }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    keyVaultReferenceIdentity: runsAs.id
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${host.properties.primaryEndpoints.blob}${package.name}'
          authentication: { type: 'UserAssignedIdentity', userAssignedIdentityResourceId: runsAs.id }
        }
      }
      scaleAndConcurrency: {
        maximumInstanceCount: instancesMax
        instanceMemoryMB: 2048
        // The log's sequencer is a timer of one second; calls of the edge have deadlines below a cold start.
        alwaysReady: [{ name: 'http', instanceCount: alwaysReady }, { name: 'function:on-audit', instanceCount: 1 }]
        triggers: { http: { perInstanceConcurrency: 32 } }
      }
      runtime: { name: 'node', version: '22' }
    }
    siteConfig: { minTlsVersion: '1.3', scmMinTlsVersion: '1.2', ftpsState: 'Disabled', http20Enabled: true }
  }
}

resource appSettings 'Microsoft.Web/sites/config@2025-03-01' = {
  parent: app
  name: 'appsettings'
  properties: union(plain, references, {
    STORAGE_CONNECTION__blobServiceUri: 'https://${account}.blob.${suffix}'
    STORAGE_CONNECTION__queueServiceUri: 'https://${account}.queue.${suffix}'
    STORAGE_CONNECTION__tableServiceUri: 'https://${account}.table.${suffix}'
    STORAGE_CONNECTION__credential: 'managedidentity'
    STORAGE_CONNECTION__clientId: runsAs.properties.clientId
    AzureWebJobsStorage__accountName: host.name
    AzureWebJobsStorage__credential: 'managedidentity'
    AzureWebJobsStorage__clientId: runsAs.properties.clientId
    APPLICATIONINSIGHTS_CONNECTION_STRING: insights
    APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${runsAs.properties.clientId};Authorization=AAD'
  })
}

output url string = 'https://${app.properties.defaultHostName}'

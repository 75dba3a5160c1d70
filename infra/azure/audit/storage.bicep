// Storage of the audit logs of one region, the account that STORAGE_CONNECTION__… of its functions names. One container is
// locked; those of uploads are made by the functions themselves.
//
//   az deployment group create --resource-group RG --template-file infra/azure/audit/storage.bicep \
//     --parameters account=NAME readers=OBJECT-ID policyLocked=false
//
// A template cannot lock a policy, only set it: the script at the end does that, in the same deployment. From then on
// nothing takes the policy away or makes it shorter, and neither the container nor the account can be deleted until the
// last entry is seven years old. So try it with days=1 in a resource group of its own; and say policyLocked=true from the
// second deployment on, because a locked policy refuses to be set again.

@minLength(3)
@maxLength(24)
param account string
param location string = resourceGroup().location

@description('How long what is written stays as it was written: seven years and two leap days.')
@minValue(1)
@maxValue(146000)
param days int = 2557

@description('The policy was locked by an earlier deployment.')
param policyLocked bool

@description('Object id of the identity that reads what is locked, for exports and for restoring.')
param readers string

@description('When the script runs: each deployment anew.')
param now string = utcNow()

var reader = '2a2b9908-6ea1-4ae2-8e65-a410df84e7d1' // Storage Blob Data Reader
var manager = '17d1049b-9a84-46fb-8f53-869881c3d3ab' // Storage Account Contributor: may lock

resource storage 'Microsoft.Storage/storageAccounts@2024-01-01' = {
  name: account
  location: location
  kind: 'StorageV2'
  sku: { name: 'Standard_ZRS' }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    // The functions connect with their identity; the account's keys open nothing.
    allowSharedKeyAccess: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2024-01-01' = {
  parent: storage
  name: 'default'
  properties: {
    // What is erased must be gone when it is deleted: a key that can be brought back is not destroyed.
    isVersioningEnabled: false
    deleteRetentionPolicy: { enabled: false }
  }
}

// Tiles, bundles, write-ahead records, signed and cosigned checkpoints.
resource log 'Microsoft.Storage/storageAccounts/blobServices/containers@2024-01-01' = {
  parent: blobs
  name: 'audit-log'
  properties: { publicAccess: 'None' }
}

resource lockedFor 'Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies@2024-01-01' = if (!policyLocked) {
  parent: log
  name: 'default'
  properties: {
    immutabilityPeriodSinceCreationInDays: days
    // No file of a log is ever appended to.
    allowProtectedAppendWrites: false
    allowProtectedAppendWritesAll: false
  }
}

// State and partial tiles; deliveries; what leaves hide; exports. All of it changes or is deleted.
resource changing 'Microsoft.Storage/storageAccounts/blobServices/containers@2024-01-01' = [
  for name in ['audit-state', 'audit-intake', 'audit-sidecar', 'audit-exports']: {
    parent: blobs
    name: name
    properties: { publicAccess: 'None' }
  }
]

resource readsLog 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(log.id, readers, 'read')
  scope: log
  properties: {
    principalId: readers
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', reader)
  }
}

resource locker 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = if (!policyLocked) {
  name: '${account}-locker'
  location: location
}

resource mayLock 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!policyLocked) {
  name: guid(storage.id, 'locker')
  scope: storage
  properties: {
    principalId: locker!.properties.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', manager)
  }
}

resource lock 'Microsoft.Resources/deploymentScripts@2023-08-01' = if (!policyLocked) {
  name: '${account}-lock'
  location: location
  kind: 'AzureCLI'
  dependsOn: [mayLock, lockedFor]
  identity: { type: 'UserAssigned', userAssignedIdentities: { '${locker.id}': {} } }
  properties: {
    azCliVersion: '2.64.0'
    forceUpdateTag: now
    retentionInterval: 'PT1H'
    timeout: 'PT15M'
    cleanupPreference: 'OnSuccess'
    environmentVariables: [
      { name: 'ACCOUNT', value: account }
      { name: 'GROUP', value: resourceGroup().name }
      { name: 'DAYS', value: string(days) }
    ]
    scriptContent: '''
      set -eu
      at="--account-name $ACCOUNT --resource-group $GROUP --container-name audit-log"
      show() { az storage container immutability-policy show $at --query "$1" --output tsv; }
      if [ "$(show state)" != Locked ]; then
        az storage container immutability-policy lock $at --if-match "$(show etag)" --output none
      fi
      # A deployment that ends well has locked it for as long as it was told.
      test "$(show state)" = Locked
      test "$(show immutabilityPeriodSinceCreationInDays)" -ge "$DAYS"
    '''
  }
}

output container string = log.id

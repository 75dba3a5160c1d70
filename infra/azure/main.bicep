// One residency zone of an environment on Azure: record, functions, and a GPU pool. README.md has the order.
//
//   az deployment group create --resource-group RG --template-file infra/azure/main.bicep \
//     --parameters infra/azure/production.json --parameters settings="$(cat DIR/functions.env)" readers=OBJECT-ID

@description('Prefix of every name: the environment and the zone, for example prdeu.')
@minLength(3)
@maxLength(12)
param name string
param location string = resourceGroup().location

@description('Text of functions.env, as `auricle deploy init` writes it: a line NAME=value for each setting.')
@secure()
param settings string

@description('Object id of the identity that reads the locked log, for exports and for restoring.')
param readers string

@description('Days for which entries of the audit log cannot be deleted. A trial takes 1: a locked policy stays.')
param auditDays int = 2557

@description('False at the first deployment only: it locks the policy, and a locked one refuses to be set again.')
param policyLocked bool

@description('Address that alarms are sent to.')
param alarmEmail string

@description('Functions instances that always run. The sequencer of the log needs one.')
@minValue(1)
param functionsAlwaysReady int = 1
@minValue(1)
@maxValue(1000)
param functionsMax int = 40

@description('Size of the GPU nodes; quota for it must exist in the region.')
param gpuSize string = 'Standard_NC24ads_A100_v4'
@minValue(0)
param gpuNodesMin int = 0
@minValue(0)
param gpuNodesMax int = 4

@description('Object ids of Entra groups that administer the cluster.')
param clusterAdmins array

@description('Networks that reach the API server of the cluster, as CIDR.')
param clusterNetworks array

var data = '${name}data'

// Identity of the functions. It exists before the app, so that the app finds its rights when it starts.
resource functionsIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-functions'
  location: location
}

module storage 'audit/storage.bicep' = {
  name: 'data'
  params: { account: data, location: location, days: auditDays, policyLocked: policyLocked, readers: readers }
}

module auditKey 'audit/key.bicep' = {
  name: 'audit-key'
  params: { vault: '${name}-keys', location: location, signer: functionsIdentity.properties.principalId }
}

module stores 'stores.bicep' = {
  name: 'stores'
  params: { account: data, vault: '${name}-keys', functions: functionsIdentity.properties.principalId }
  dependsOn: [storage, auditKey]
}

module monitor 'monitor.bicep' = {
  name: 'monitor'
  params: {
    name: name
    location: location
    email: alarmEmail
    publisher: functionsIdentity.properties.principalId
  }
}

module functions 'functions.bicep' = {
  name: 'functions'
  params: {
    name: name
    location: location
    identity: functionsIdentity.name
    vault: '${name}-keys'
    account: data
    settings: settings
    insights: monitor.outputs.connection
    alwaysReady: functionsAlwaysReady
    instancesMax: functionsMax
  }
  dependsOn: [stores]
}

module pool 'pool.bicep' = if (gpuNodesMax > 0) {
  name: 'pool'
  params: {
    name: name
    location: location
    gpuSize: gpuSize
    nodesMin: gpuNodesMin
    nodesMax: gpuNodesMax
    admins: clusterAdmins
    networks: clusterNetworks
  }
}

output functionsUrl string = functions.outputs.url
output auditKeyId string = auditKey.outputs.id

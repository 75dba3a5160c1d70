// A GPU pool: network, registry and an AKS cluster with a node pool that scales from nothing. The chart runs
// in it.
param name string
param location string

param gpuSize string
param nodesMin int
param nodesMax int
param admins array
param networks array

var acrPull = '7f951dda-4ed3-4680-a7ca-43fe172d538d' // AcrPull
var networkContributor = '4d97b98b-1d4f-4787-a291-c67834d212e7' // Network Contributor: load balancers

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-cluster'
  location: location
}

// The edge dials agents over TLS at one port. Nothing else comes in.
resource rules 'Microsoft.Network/networkSecurityGroups@2025-05-01' = {
  name: '${name}-nodes'
  location: location
  properties: {
    securityRules: [
      {
        name: 'edge'
        properties: {
          priority: 100
          direction: 'Inbound'
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: 'Internet'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '443'
        }
      }
    ]
  }
}

resource network 'Microsoft.Network/virtualNetworks@2025-05-01' = {
  name: '${name}-network'
  location: location
  properties: {
    addressSpace: { addressPrefixes: ['10.20.0.0/16'] }
    subnets: [
      {
        name: 'nodes'
        properties: { addressPrefix: '10.20.0.0/20', networkSecurityGroup: { id: rules.id } }
      }
    ]
  }
}

resource mayJoin 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(network.id, identity.id, 'join')
  scope: network
  properties: {
    principalId: identity.properties.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', networkContributor)
  }
}

resource registry 'Microsoft.ContainerRegistry/registries@2025-04-01' = {
  name: '${name}images'
  location: location
  sku: { name: 'Standard' }
  properties: { adminUserEnabled: false, anonymousPullEnabled: false }
}

resource cluster 'Microsoft.ContainerService/managedClusters@2026-01-01' = {
  name: '${name}-pool'
  location: location
  dependsOn: [mayJoin]
  sku: { name: 'Base', tier: 'Standard' }
  identity: { type: 'UserAssigned', userAssignedIdentities: { '${identity.id}': {} } }
  properties: {
    dnsPrefix: name
    disableLocalAccounts: true
    aadProfile: { managed: true, enableAzureRBAC: true, adminGroupObjectIDs: admins }
    apiServerAccessProfile: { authorizedIPRanges: networks }
    autoUpgradeProfile: { upgradeChannel: 'patch', nodeOSUpgradeChannel: 'NodeImage' }
    oidcIssuerProfile: { enabled: true }
    securityProfile: {
      workloadIdentity: { enabled: true }
      imageCleaner: { enabled: true, intervalHours: 168 }
    }
    workloadAutoScalerProfile: { keda: { enabled: true } }
    networkProfile: {
      networkPlugin: 'azure'
      networkPluginMode: 'overlay'
      networkDataplane: 'cilium'
      networkPolicy: 'cilium'
      loadBalancerSku: 'standard'
    }
    // A GPU node is wanted for a pod of a pool only, and goes ten minutes after the last one.
    autoScalerProfile: { 'scale-down-unneeded-time': '10m', 'skip-nodes-with-local-storage': 'false' }
    agentPoolProfiles: [
      {
        name: 'system'
        mode: 'System'
        vmSize: 'Standard_D4ds_v5'
        osType: 'Linux'
        osSKU: 'AzureLinux'
        count: 2
        enableAutoScaling: true
        minCount: 2
        maxCount: 4
        vnetSubnetID: network.properties.subnets[0].id
        nodeTaints: ['CriticalAddonsOnly=true:NoSchedule']
      }
    ]
  }
}

resource gpu 'Microsoft.ContainerService/managedClusters/agentPools@2026-01-01' = {
  parent: cluster
  name: 'gpu'
  properties: {
    mode: 'User'
    vmSize: gpuSize
    osType: 'Linux'
    osSKU: 'Ubuntu'
    enableAutoScaling: true
    count: nodesMin
    minCount: nodesMin
    maxCount: nodesMax
    vnetSubnetID: network.properties.subnets[0].id
    gpuProfile: { driver: 'Install' }
    nodeLabels: { 'auricle/pool': name }
    nodeTaints: ['nvidia.com/gpu=present:NoSchedule']
    upgradeSettings: { drainTimeoutInMinutes: 60, maxSurge: '1' }
  }
}

resource mayPull 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, cluster.id, 'pull')
  scope: registry
  properties: {
    principalId: cluster.properties.identityProfile.kubeletidentity.objectId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', acrPull)
  }
}

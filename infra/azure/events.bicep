// Blob events of the data account to the functions. A deployment of its own, after the code is published:
// Event Grid validates the address, and the key of the extension exists only then.
//
//   az deployment group create --resource-group RG --template-file infra/azure/events.bicep --parameters name=prdeu

param name string
param location string = resourceGroup().location

resource storage 'Microsoft.Storage/storageAccounts@2024-01-01' existing = {
  name: '${name}data'
}

resource app 'Microsoft.Web/sites@2025-03-01' existing = {
  name: '${name}-functions'
}

var webhook = 'https://${app.properties.defaultHostName}/runtime/webhooks/blobs'
var key = listKeys('${app.id}/host/default', '2025-03-01').systemKeys.blobs_extension

resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' = {
  name: '${name}-blobs'
  location: location
  properties: { source: storage.id, topicType: 'Microsoft.Storage.StorageAccounts' }
}

resource subscriptions 'Microsoft.EventGrid/systemTopics/eventSubscriptions@2025-02-15' = [
  for trigger in [
    { function: 'on-upload', container: 'uploads' }
    { function: 'on-outcome', container: 'outcomes' }
    { function: 'on-model-upload', container: 'model-uploads' }
  ]: {
    parent: topic
    name: trigger.function
    properties: {
      eventDeliverySchema: 'EventGridSchema'
      filter: {
        includedEventTypes: ['Microsoft.Storage.BlobCreated']
        subjectBeginsWith: '/blobServices/default/containers/${trigger.container}/'
      }
      destination: {
        endpointType: 'WebHook'
        properties: {
          endpointUrl: '${webhook}?functionName=Host.Functions.${trigger.function}&code=${key}'
          minimumTlsVersionAllowed: '1.2'
        }
      }
      // The sweep of the functions finds what is lost here within two minutes, so retries may end early.
      retryPolicy: { maxDeliveryAttempts: 30, eventTimeToLiveInMinutes: 60 }
    }
  }
]

// Log Analytics, Application Insights, and an alert for each group of alarms that functions/README.md names.
param name string
param location string
param email string

@description('Principal id of the identity that writes telemetry.')
param publisher string

var metricsPublisher = '3913510d-42f4-4e42-8a64-420c390055eb' // Monitoring Metrics Publisher

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-07-01' = {
  name: '${name}-logs'
  location: location
  properties: {
    sku: { name: 'PerGB2018' }
    retentionInDays: 90
    features: { disableLocalAuth: true }
  }
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: '${name}-insights'
  location: location
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspace.id
    // A key in a connection string writes nothing; identities do.
    DisableLocalAuth: true
  }
}

resource mayPublish 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(insights.id, publisher, 'publish')
  scope: insights
  properties: {
    principalId: publisher
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', metricsPublisher)
  }
}

resource receivers 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: '${name}-alarms'
  location: 'global'
  properties: {
    enabled: true
    groupShortName: name
    emailReceivers: [{ name: 'operator', emailAddress: email, useCommonAlertSchema: true }]
  }
}

var record = [
  'failed'
  'diverged'
  'doubted'
  'unsigned'
  'gap'
  'silent'
  'full'
  'unreadable'
  'beaten'
  'clock'
  'unwitnessed'
  'lost'
  'forged'
  'storage_full'
]
var models = ['not withdrawn', 'release untold', 'live unjudged', 'live unreadable', 'tier unmoved']

resource alarms 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = [
  for alarm in [
    { rule: 'record', severity: 1, query: 'where line.what in ("${join(record, '","')}")' }
    { rule: 'models', severity: 2, query: 'where line.what in ("${join(models, '","')}")' }
    { rule: 'dead-jobs', severity: 2, query: 'where line.what == "queue" and toint(line.dead) > 0' }
  ]: {
    name: '${name}-${alarm.rule}'
    location: location
    properties: {
      enabled: true
      severity: alarm.severity
      scopes: [insights.id]
      evaluationFrequency: 'PT5M'
      windowSize: 'PT5M'
      criteria: {
        allOf: [
          {
            query: 'traces | extend line = parse_json(message) | ${alarm.query}'
            timeAggregation: 'Count'
            operator: 'GreaterThan'
            threshold: 0
          }
        ]
      }
      actions: { actionGroups: [receivers.id] }
    }
  }
]

output connection string = insights.properties.ConnectionString

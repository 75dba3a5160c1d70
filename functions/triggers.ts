// Every trigger of the back office, on one page. The only file that knows the functions library's `app`.
import { app } from '@azure/functions';
import { onHealth } from './health/on-health.ts';
import { currentSettings } from './settings.ts';
import { openBlobs, openJobs } from './stores.ts';

const settings = currentSettings();
const stores = { blobs: openBlobs(settings), jobs: openJobs(settings) };

app.http('health', {
  route: 'health',
  methods: ['GET'],
  authLevel: 'anonymous',
  handler: (_request, context) => onHealth(stores, (line) => context.warn(line)),
});

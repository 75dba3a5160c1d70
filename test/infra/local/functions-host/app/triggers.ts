// A tiny app on the real functions library: one function per trigger that the local host drives.
import { app, type HttpRequest, type InvocationContext, output } from '@azure/functions';

app.http('greet', {
  route: 'greet/{name:alpha}/{times:int?}',
  methods: ['GET', 'POST'],
  authLevel: 'anonymous',
  handler: async (request: HttpRequest) => ({
    status: 201,
    headers: { 'x-times': request.params.times ?? 'none' },
    jsonBody: { hello: request.params.name, query: request.query.get('q'), body: await request.text() },
  }),
});

app.http('fails', {
  methods: ['GET'],
  authLevel: 'anonymous',
  handler: () => {
    throw new Error('the reason is ours alone');
  },
});

// Blob in, message out: path parameters, and an output binding.
app.storageBlob('on-upload', {
  path: '%IN%/{tenant}/{name}.wav',
  connection: 'STORE',
  return: output.storageQueue({ queueName: 'arrived', connection: 'STORE' }),
  handler: (blob: unknown, context: InvocationContext) => {
    const { tenant, name } = context.triggerMetadata ?? {};
    if (name === 'broken') throw new Error('cannot read it');
    return { tenant, name, bytes: (blob as Buffer).length };
  },
});

// Message in, blob out; fails for ever on some, and once on others.
app.storageQueue('on-arrived', {
  queueName: 'arrived',
  connection: 'STORE',
  return: output.storageBlob({ path: 'outbox/{queueTrigger}', connection: 'STORE' }),
  handler: (message: unknown, context: InvocationContext) => {
    const tries = Number(context.triggerMetadata?.dequeueCount);
    if (message === 'poison' || (message === 'once' && tries < 2)) throw new Error(`not at try ${tries}`);
    return 'done';
  },
});

app.timer('tick', {
  schedule: '0 0 3 1 1 *',
  return: output.storageQueue({ queueName: 'ticks', connection: 'STORE' }),
  handler: (timer) => ({ pastDue: timer.isPastDue }),
});

// An event of a blob; the host loses some and duplicates others.
app.storageBlob('on-noticed', {
  path: 'notices/{name}',
  connection: 'STORE',
  source: 'EventGrid',
  return: output.storageQueue({ queueName: 'noticed', connection: 'STORE' }),
  handler: (_, context: InvocationContext) => String(context.triggerMetadata?.name),
});

// Functions that several hosts run concurrently.
app.storageQueue('on-shared', {
  queueName: 'shared',
  connection: 'STORE',
  return: output.storageQueue({ queueName: 'shares', connection: 'STORE' }),
  handler: (message: unknown) => String(message),
});

app.timer('each-second', {
  schedule: '* * * * * *',
  return: output.storageQueue({ queueName: 'seconds', connection: 'STORE' }),
  handler: (timer) => timer.scheduleStatus.last,
});

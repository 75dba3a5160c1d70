import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openLog } from '../../../infra/local/logs.ts';
import { inherited, type Supervised, supervise } from '../../../infra/local/supervise.ts';
import { folderForTest } from './folder.ts';
import { isRunning } from './process.ts';

/** A part made of a few lines of code, and what it printed. */
function partOf(code: string, env: Record<string, string> = {}): { supervised: Supervised; lines: string[] } {
  const folder = folderForTest();
  const entry = path.join(folder, 'part.ts');
  writeFileSync(entry, code);
  const lines: string[] = [];
  const supervised = supervise(
    { name: 'part', entry, env, after: [], ready: 'message', stopTurn: 1 },
    openLog(folder, 'part', (line) => lines.push(line)),
    () => {},
  );
  supervised.begin();
  onTestFinished(() => supervised.stop());
  return { supervised, lines };
}

const LIVE = `setInterval(() => {}, 1000); process.send('ready');`;

it('starts a killed part again', async () => {
  const { supervised } = partOf(LIVE);
  await supervised.started;
  const before = supervised.pid();
  supervised.kill();
  await expect.poll(() => supervised.isReady() && supervised.pid() !== before).toBe(true);
});

it('gives up a part that cannot start, and names its log', async () => {
  const { supervised, lines } = partOf(`throw new Error('no such model');`);
  await expect(supervised.started).rejects.toThrow(/part cannot start \(exit code 1\): see .*part\.log/);
  expect(lines.join('\n')).toContain('no such model');
});

it('asks first, and ends a part that does not listen', async () => {
  const polite = partOf(`process.on('SIGTERM', () => { console.log('goodbye'); process.exit(0); }); ${LIVE}`);
  const deaf = partOf(`process.on('SIGTERM', () => {}); ${LIVE}`);
  await Promise.all([polite.supervised.started, deaf.supervised.started]);
  const pid = deaf.supervised.pid() as number;
  await Promise.all([polite.supervised.stop(), deaf.supervised.stop()]);
  expect(polite.lines.join('\n')).toContain('goodbye');
  expect(isRunning(pid)).toBe(false);
});

it('ignores Ctrl-C in the part: the supervisor decides the order', async () => {
  const { supervised, lines } = partOf(`process.on('SIGUSR2', () => console.log('still here')); ${LIVE}`);
  await supervised.started;
  supervised.kill('SIGINT');
  supervised.kill('SIGUSR2');
  await expect.poll(() => lines.join('\n')).toContain('still here');
});

it('hands no credentials of the shell to a part', () => {
  const environment = {
    PATH: '/bin',
    AWS_SECRET_ACCESS_KEY: 'a',
    AZURE_CLIENT_SECRET: 'b',
    OPENAI_API_KEY: 'c',
    HOME: '/h',
  };
  expect(inherited(environment)).toEqual({ PATH: '/bin', HOME: '/h' });
});

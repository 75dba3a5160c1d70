// Announcement of a serving stack: its address, and one command that works when pasted.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { HOST } from './ports.ts';
import { ROOT } from './root.ts';
import type { Stack } from './stack.ts';

const CLIPS = path.join(ROOT, 'test/clips');

export function announce(stack: Omit<Stack, 'pid' | 'isReady' | 'kill' | 'stop'>): string {
  const near = (file: string) => {
    const relative = path.relative(process.cwd(), file);
    return relative.startsWith('..') ? file : relative;
  };
  const token = near(stack.tokenFile);
  const lines = [
    '',
    `Auricle serves on ${stack.url} after ${(stack.readyMs / 1_000).toFixed(1)} s`,
    `  token   ${token}`,
    ...stack.pools.flatMap(({ name, platform, region, zone }) => [
      `  pool    ${name} (${platform}, ${region}, zone ${zone})`,
      `  metrics http://${HOST}:${stack.ports[`agent-${name}`]}/metrics`,
    ]),
    ...(stack.engine === 'triton' ? ['  engine  Triton, one in each pool'] : []),
    ...(stack.models === undefined ? [] : [`  models  all of ${near(stack.models)} are loaded`]),
    '',
  ];
  const clip =
    existsSync(CLIPS) &&
    readdirSync(CLIPS)
      .sort()
      .find((name) => name.endsWith('.wav'));
  // With custom models the example would not fit; `auricle models` lists them.
  if (clip && stack.pools.length > 0 && stack.models === undefined) {
    lines.push(
      'Try it:',
      '',
      `  curl -F model=reference-en -F file=@${near(path.join(CLIPS, clip))} ${stack.url}/v1/audio/transcriptions \\`,
      `    -H "authorization: Bearer $(cat ${token})"`,
      '',
    );
  }
  lines.push('Ctrl-C stops it.', '');
  return lines.join('\n');
}

// Cost of a process, which it reports at its end.
export interface Cost {
  /** Its start included. */
  readonly seconds: number;
  /** User and system time. */
  readonly cpu: number;
  /** Largest resident size. */
  readonly mb: number;
}

/** Reads the peak size from /proc, since that of `resourceUsage` includes the parent process. */
const TELL = `import { readFileSync } from 'node:fs';
const largest = () => {
  try {
    return Number(/VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
  } catch {
    return process.resourceUsage().maxRSS;
  }
};
process.on('exit', () => {
  const { user, system } = process.cpuUsage();
  console.error(JSON.stringify({ seconds: process.uptime(), cpu: (user + system) / 1e6, mb: largest() / 1024 }));
});`;

/** Arguments of Node, before the script. */
export const tellingCost: readonly string[] = ['--import', `data:text/javascript,${encodeURIComponent(TELL)}`];

/** Reads the last line of the process's error output. */
export const costIn = (stderr: string): Cost => JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '') as Cost;

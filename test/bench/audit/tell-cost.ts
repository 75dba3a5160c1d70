// What a process took, told by itself when it ends, whatever it runs.
export interface Cost {
  /** Its start included. */
  readonly seconds: number;
  /** User and system time. */
  readonly cpu: number;
  /** Largest resident size. */
  readonly mb: number;
}

/** What `resourceUsage` calls the largest size has that of the process that started it in it. */
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

/** The last line of what it said to its error output. */
export const costIn = (stderr: string): Cost => JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '') as Cost;

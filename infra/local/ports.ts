// Ports of the parts, chosen once per run and kept across restarts, so that no other part has to learn a new
// one.
import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';

export const HOST = '127.0.0.1';

// Below the range from which operating systems take the source ports of outgoing connections (32768 on Linux, 49152
// elsewhere), so that a port stays free while its part restarts.
const LOWEST = 20_000;
const COUNT = 10_000;

export async function isFree(port: number): Promise<boolean> {
  return new Promise((settle) => {
    const server = createServer();
    server.once('error', () => settle(false));
    server.listen({ port, host: HOST, exclusive: true }, () => server.close(() => settle(true)));
  });
}

/**
 * Claims: one file a port, with the owning process; a part may listen only seconds after its port was chosen.
 */
const CLAIMS = path.join(os.tmpdir(), 'auricle-ports');
const own = new Set<string>();

function dropClaims(): void {
  for (const file of own) rmSync(file, { force: true });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Reports whether the process that a claim names lives. */
function isHeld(file: string): boolean {
  return isAlive(Number(readFileSync(file, 'utf8')));
}

/** Removes the claim of a dead process, of two processes at once in one; a new owner keeps its claim. */
function release(file: string): void {
  const moved = `${file}.${process.pid}`;
  renameSync(file, moved);
  try {
    if (isHeld(moved)) linkSync(moved, file);
  } finally {
    rmSync(moved);
  }
}

/**
 * Claims a port against other stacks of this machine while this process lives. False when another one has it.
 */
function claim(port: number): boolean {
  const file = path.join(CLAIMS, String(port));
  try {
    if (isHeld(file)) return false;
    release(file);
  } catch {
    // No claim exists, or another process was faster, which the next line detects.
  }
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
  } catch {
    return false;
  }
  if (own.size === 0) process.once('exit', dropClaims);
  own.add(file);
  return true;
}

/** Removes claims of killed processes, which could not drop theirs. */
function sweepClaims(): void {
  for (const name of readdirSync(CLAIMS)) {
    const file = path.join(CLAIMS, name);
    try {
      if (!own.has(file) && !isHeld(file)) release(file);
    } catch {
      // Another process was faster.
    }
  }
}

/** `count` different ports that are free and that no other stack of this machine has chosen. */
export async function choosePorts(count: number, random: () => number = Math.random): Promise<number[]> {
  mkdirSync(CLAIMS, { recursive: true });
  if (own.size === 0) sweepClaims();
  const chosen: number[] = [];
  const start = Math.floor(random() * COUNT);
  for (let step = 0; step < COUNT && chosen.length < count; step += 1) {
    const port = LOWEST + ((start + step * 7) % COUNT);
    if (claim(port) && (await isFree(port))) chosen.push(port);
  }
  if (chosen.length < count) throw new Error(`no ${count} free ports between ${LOWEST} and ${LOWEST + COUNT}`);
  return chosen;
}

// A headless Chromium, spoken to by the DevTools protocol over its pipe's WebSocket.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { WebSocket } from 'ws';

type Json = Record<string, unknown>;

export interface Page {
  send(method: string, params?: Json): Promise<Json>;
  /** The value of an expression in the page, its promise awaited. */
  evaluate<T>(expression: string): Promise<T>;
  /** Resolves once the expression is true: the page is asked again with each frame it draws. */
  until(expression: string): Promise<void>;
  /** Addresses that the page asked for. */
  readonly requests: readonly string[];
  /** Errors and failed requests of the page. */
  readonly complaints: readonly string[];
}

export interface Browser {
  open(url: string): Promise<Page>;
  close(): Promise<void>;
}

/** `more`: further flags of Chromium. */
export async function openBrowser(more: readonly string[] = []): Promise<Browser> {
  const profile = mkdtempSync(path.join(os.tmpdir(), 'auricle-browser-'));
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'];
  const child = spawn(
    process.env.CHROMIUM ?? 'chromium',
    [...flags, ...more, '--remote-debugging-port=0', `--user-data-dir=${profile}`, 'about:blank'],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const endpoint = await new Promise<string>((settle, fail) => {
    let said = '';
    child.stderr.on('data', (piece: Buffer) => {
      said += piece.toString();
      const [, url] = /DevTools listening on (ws:\S+)/.exec(said) ?? [];
      if (url) settle(url);
    });
    child.once('exit', () => fail(new Error(`the browser ended: ${said.slice(-500)}`)));
  });
  const socket = new WebSocket(endpoint);
  await new Promise<void>((settle, fail) => socket.once('open', () => settle()).once('error', fail));
  const waiting = new Map<number, { settle(value: Json): void; fail(error: Error): void }>();
  const pages = new Map<string, { requests: string[]; complaints: string[] }>();
  let last = 0;
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as Json & { id?: number; method?: string; sessionId?: string };
    const asked = message.id === undefined ? undefined : waiting.get(message.id);
    if (message.id !== undefined) waiting.delete(message.id);
    if (asked && message.error) asked.fail(new Error(JSON.stringify(message.error)));
    else if (asked) asked.settle(message.result as Json);
    else note(pages.get(message.sessionId ?? ''), message.method ?? '', message.params as Json);
  });
  const send = (method: string, params: Json = {}, sessionId?: string): Promise<Json> =>
    new Promise((settle, fail) => {
      last += 1;
      waiting.set(last, { settle, fail });
      socket.send(JSON.stringify({ id: last, method, params, ...(sessionId && { sessionId }) }));
    });
  return {
    async open(url) {
      const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
      const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
      const session = String(sessionId);
      const seen = { requests: [] as string[], complaints: [] as string[] };
      pages.set(session, seen);
      const ask = (method: string, params?: Json) => send(method, params, session);
      for (const domain of ['Page', 'Runtime', 'Network', 'Log', 'DOM']) await ask(`${domain}.enable`);
      await ask('Page.navigate', { url });
      const page: Page = {
        ...seen,
        send: ask,
        async evaluate<T>(expression: string) {
          const answer = await ask('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
          if (answer.exceptionDetails) throw new Error(JSON.stringify(answer.exceptionDetails));
          return (answer.result as Json).value as T;
        },
        async until(expression) {
          await page.evaluate(
            `new Promise((settle) => { const look = () => (${expression}) ? settle(true) : requestAnimationFrame(look); look(); })`,
          );
        },
      };
      await page.until("document.readyState === 'complete' && location.href !== 'about:blank'");
      return page;
    },
    async close() {
      const ended = new Promise((settle) => child.once('exit', settle));
      await send('Browser.close').catch(() => child.kill());
      await ended;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function note(seen: { requests: string[]; complaints: string[] } | undefined, method: string, params: Json): void {
  if (method === 'Network.requestWillBeSent') seen?.requests.push(String((params.request as Json).url));
  if (method === 'Runtime.exceptionThrown' || method === 'Log.entryAdded')
    seen?.complaints.push(JSON.stringify(params));
}

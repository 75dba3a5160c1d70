import { describe, expect, it } from 'vitest';
import { createTerminal, requestText } from '../../../infra/local/terminal.ts';

const request = {
  event: 'request',
  request: 'ID',
  address: 'POST /v1/audio/transcriptions',
  action: 'transcribe',
  status: 200,
  milliseconds: 210,
};
const served = { ...request, model: 'reference-en', audioSeconds: 3.75, agent: 'aks-westeurope-0' };

describe('U8 a line per request', () => {
  it.each([
    ['served', served, 'POST /v1/audio/transcriptions 200 reference-en 3.8 s → aks-westeurope 210 ms ID'],
    ['refused', { ...request, status: 503, reason: 'no_pool' }, 'POST /v1/audio/transcriptions 503 no_pool 210 ms ID'],
    ['of a stream', { ...request, address: undefined, action: 'stream' }, 'stream 200 210 ms ID'],
  ])('%s', (_, line, text) => expect(requestText(JSON.stringify(line))).toBe(text));

  it.each(['GET /healthz', 'POST /v1/usage'])('leaves %s of the stack itself out', (address) => {
    expect(requestText(JSON.stringify({ ...request, address }))).toBeUndefined();
  });

  it('leaves other output out', () => {
    expect([requestText('ready'), requestText('{"event":"failed"}')]).toEqual([undefined, undefined]);
  });
});

describe('U8 the terminal of a stack', () => {
  function start(isTTY: boolean, verbose = false) {
    const written: string[] = [];
    const terminal = createTerminal({ isTTY, write: (text) => written.push(text) }, verbose);
    terminal.line('blob', 'starting', 'supervisor');
    terminal.line('blob', '{"event":"engine-unreachable"}', 'part');
    terminal.line('blob', 'ready after 0.6 s', 'supervisor');
    terminal.line('edge', JSON.stringify(served), 'part');
    terminal.serving('BANNER');
    terminal.line('edge', JSON.stringify(request), 'part');
    terminal.line('blob', 'died (SIGKILL): starting again in 200 ms', 'supervisor');
    return written.join('');
  }

  it('prints ready parts, the banner, requests, and parts that die', () => {
    expect(
      start(false)
        .split('\n')
        .map((line) => line.trim()),
    ).toEqual([
      'blob                   ready after 0.6 s',
      'BANNER',
      'POST /v1/audio/transcriptions 200 210 ms ID',
      'blob                   died (SIGKILL): starting again in 200 ms',
      '',
    ]);
  });

  it('shows the starting parts on one line of a screen', () => {
    const ready = `  ${'blob'.padEnd(22)} ready after 0.6 s\n`;
    expect(start(true).startsWith(`\r\u001b[2K  starting blob\r\u001b[2K${ready}`)).toBe(true);
  });

  it('prints all output with --verbose', () => expect(start(false, true)).toContain('engine-unreachable'));
});

import { execFile } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Running, run } from '../stack/running.ts';
import { folder, interpreterOf } from './install.ts';

let running: Running;
beforeAll(async () => {
  running = await run();
});
afterAll(() => running?.end());

/** All that can be asked of requests which nobody chose: whatever comes, the answer is one that was described. */
const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'negative_data_rejection',
  'unsupported_method',
  'ignored_auth',
];

/** What it reports, from its failures on. */
function generate(url: string, token: string): Promise<string> {
  const given = [
    ...['-m', 'schemathesis.cli', 'run', `${url}/v1/openapi.json`],
    ...['--checks', checks.join(','), '--continue-on-failure', '--max-examples', '25', '--seed', '1'],
    // It cannot make a recording: bodies of the type audio/* have no generator.
    ...['--exclude-operation-id', 'listen'],
    // It would wait ten minutes for the end of an answer that goes on as long as the log does.
    ...['--exclude-operation-id', 'streamAuditLog'],
    // What is longer than its field is longer than a body may be, and 413 is no refusal to it.
    ...['--exclude-operation-id', 'takeRelease'],
    ...['--header', `Authorization: Bearer ${token}`, '--no-color'],
  ];
  return new Promise((resolve) => {
    // It keeps what it found where it runs.
    const options = { cwd: folder, maxBuffer: 2 ** 24 };
    execFile(interpreterOf('schemathesis'), given, options, (_, output) => resolve(output));
  });
}

describe('C10 the interface is what its description says', () => {
  it('hundreds of requests made out of it, right and wrong ones, are answered as described', async () => {
    const report = await generate(running.stack.url, running.stack.token);
    expect(report.slice(report.indexOf('= FAILURES ='))).not.toContain('Reproduce with');
    expect(report).toMatch(/\d+ generated, \d+ passed/);
    expect(report).not.toMatch(/\d+ generated.*found \d+/);
  }, 300_000);
});

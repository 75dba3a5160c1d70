// Notifications of an upload: webhook receivers and clients that wait for news.
import { beforeEach, describe, expect, it } from 'vitest';
import { callbackProblem, isPublicAddress } from '../../../functions/jobs/callback.ts';
import type { JobContext } from '../../../functions/jobs/context.ts';
import { createProject } from '../../../functions/jobs/create-project.ts';
import { decideNext, deliver, WEBHOOK_TRIES_MAX } from '../../../functions/jobs/deliver.ts';
import { grantUpload } from '../../../functions/jobs/grant-upload.ts';
import { longPoll } from '../../../functions/jobs/long-poll.ts';
import { createPost, type Posted } from '../../../functions/jobs/post.ts';
import { MINUTE } from '../../../functions/jobs/record.ts';
import { cancelUpload, getUpload, listUploads } from '../../../functions/jobs/uploads.ts';
import { WEBHOOK_SILENCE_MS, WEBHOOKS_PER_TENANT_MAX } from '../../../functions/jobs/webhook-limiter.ts';
import { UPLOAD_FOLLOWERS_MAX } from '../../../shared/jobs/limits.ts';
import { projectIdOf } from '../../../shared/jobs/project-id.ts';
import type { NewUpload } from '../../../shared/jobs/upload-contract.ts';
import { refusals } from '../../../shared/refusal.ts';
import { Quiet } from './quiet.ts';

let quiet: Quiet;
let office: JobContext;
beforeEach(() => {
  quiet = new Quiet();
  office = quiet.instant();
});

describe('notices', () => {
  const post = (answers: Posted[]) => async () => answers.shift() ?? { status: 204 };

  it('are delivered again after pauses, then given up, and every delivery is on record', async () => {
    const upload = await quiet.uploaded({ callback: 'https://receiver.test/' });
    await quiet.outcome(upload, 'transcript', { pieces: 1 });
    const late: Posted[] = Array.from({ length: 20 }, () => ({ failure: 'late' }));
    for (let tries = 0; tries < WEBHOOK_TRIES_MAX; tries += 1) {
      expect((await quiet.row(upload)).notice).toBe('pending');
      await deliver(office, post(late), { ...upload, run: 1, tries });
      // One that comes twice is not sent twice.
      await deliver(office, post([]), { ...upload, run: 1, tries });
      quiet.wait(10 * 60 * MINUTE);
    }
    expect((await quiet.row(upload)).notice).toBe('failed');
    const deliveries = [...quiet.table.of('acme').keys()].filter((key) => key.startsWith('n!'));
    expect(deliveries).toHaveLength(WEBHOOK_TRIES_MAX);
  });

  it('T4 a tenant’s hanging receivers delay no other tenant’s', async () => {
    const [at, pause] = [WEBHOOKS_PER_TENANT_MAX, WEBHOOK_SILENCE_MS];
    const done = async (tenant: string) => {
      const upload = await quiet.uploaded({ tenant, callback: 'https://receiver.test/' });
      await quiet.outcome(upload, 'transcript', { pieces: 1 });
      return upload;
    };
    const uploads = await Promise.all(Array.from({ length: at + 3 }, () => done('acme')));
    const answers: ((posted: Posted) => void)[] = [];
    const hanging = () => new Promise<Posted>((resolve) => answers.push(resolve));
    const tell = (upload: NewUpload, tries = 0, how = hanging) => deliver(office, how, { ...upload, run: 1, tries });
    const telling = uploads.slice(0, at).map((upload) => tell(upload));
    await Promise.all(uploads.slice(at).map((upload) => tell(upload)));
    expect(answers).toHaveLength(at);
    const other = await done('other');
    await tell(other, 0, post([]));
    expect((await quiet.row(other)).notice).toBe('delivered');
    for (const answer of answers) answer({ failure: 'late' });
    await Promise.all(telling);
    // From then on it is not even called, and that is as good as no answer.
    const [, , , last] = uploads.slice(at - 1) as [NewUpload, NewUpload, NewUpload, NewUpload];
    await tell(last);
    expect(answers).toHaveLength(at);
    quiet.wait(pause);
    await tell(last, 1, post([]));
    expect((await quiet.row(last)).notice).toBe('delivered');
    // A postponed notice is delivered as a first delivery.
    const [put] = uploads.slice(at) as [NewUpload];
    await tell(put, 0, post([]));
    expect((await quiet.row(put)).notice).toBe('delivered');
  });

  it('end with an answer of 2xx, or of 410', () => {
    expect(decideNext({ status: 204 }, 0)).toBe('delivered');
    expect(decideNext({ status: 410 }, 0)).toBe('failed');
    for (const posted of [{ status: 302 }, { status: 500 }, { failure: 'late' }])
      expect(decideNext(posted, 0)).toBe('again');
  });

  it.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '::1',
    '::',
    'fe80::1',
    'fd00::1',
    '::ffff:10.0.0.1',
    '::ffff:a00:1',
    '168.63.129.16',
    '192.0.2.1',
    '192.88.99.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '255.255.255.255',
    '::127.0.0.1',
    '::7f00:1',
    '::808:808',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    '100::1',
    '2001::1',
    '2001:20::1',
    '2001:db8::1',
    '2002:7f00:1::1',
    '3fff::1',
    '5f00::1',
    'fec0::1',
    'ff02::1',
    'receiver.test',
  ])('never go to %s', (address) => expect(isPublicAddress(address)).toBe(false));

  it.each(['93.184.216.34', '::ffff:93.184.216.34', '2606:2800:220:1::1', '2a00:1450::1'])('may go to %s', (address) =>
    expect(isPublicAddress(address)).toBe(true),
  );
});

const hopeless = [
  ['http://receiver.example.org/', 'it begins with https://'],
  ['ftp://receiver.example.org/', 'it begins with https://'],
  ['https://user:secret@example.org/', 'it holds no user name and no password'],
  ['https://example.org:0/', 'nothing listens on port 0'],
  ['https://10.1.2.3/', 'its address is not public'],
  ['https://0x7f.1/', 'its address is not public'],
  ['https://[::1]/', 'its address is not public'],
  ['https://[::ffff:127.0.0.1]/', 'its address is not public'],
  ['https://localhost/', 'its host is not public'],
  ['https://receiver.internal./', 'its host is not public'],
  ['https://intranet/', 'its host is not public'],
  ['https://-receiver.example.org/', 'its host is no name'],
  [`https://${'a'.repeat(64)}.example.org/`, 'its host is no name'],
] as const;

describe('C11 a callback that can never be delivered', () => {
  const production = (): JobContext => ({ ...office, settings: { ...office.settings, MODE: 'production' } });

  it.each(hopeless)('%s is refused with 400, and not called', async (callback, rule) => {
    const { upload } = await quiet.granted();
    const refusal = { reason: 'callback_invalid', params: { rule } };
    expect(await grantUpload(production(), { ...upload, callback })).toEqual({ ok: false, refusal });
    expect(await createPost(false)(callback, {}, '')).toEqual({ failure: rule });
    expect(refusals.callback_invalid.status).toBe(400);
  });

  it('is refused for a project, too, and where no notices are sent', async () => {
    const { id, tenant } = await quiet.uploaded();
    const asked = { id: projectIdOf(id), tenant, class: 'batch', model: 'v', zone: 'eu' } as const;
    const documents = [{ contentType: 'text/plain' as const }];
    const project = { documents, gaps: { segment: 0, block: 0 }, light: false };
    const callback = 'https://10.0.0.1/';
    const made = await createProject(production(), { ...asked, project, callback });
    expect(made).toMatchObject({ refusal: { reason: 'callback_invalid' } });
    const silent = { ...office, settings: { ...office.settings, WEBHOOK_KEY: undefined } };
    const { upload } = await quiet.granted();
    const granted = await grantUpload(silent, { ...upload, callback: 'https://example.org/' });
    expect(granted).toMatchObject({ refusal: { params: { rule: 'no notices are sent here' } } });
  });

  it.each(['https://hook.example.org/a?b', 'https://93.184.216.34/', 'https://xn--bcher-kva.example.org:8443/'])(
    '%s can be',
    (callback) => expect(callbackProblem(callback, false)).toBeUndefined(),
  );

  it('is another in development, where any host and plain HTTP will do', () => {
    expect(callbackProblem('http://127.0.0.1:9/', true)).toBeUndefined();
    expect(callbackProblem('http://user@127.0.0.1/', true)).toBe('it holds no user name and no password');
  });
});

describe('C11 the file of an upload', () => {
  it.each(['granted', 'uploaded', 'refused', 'done'])('keeps no name in any row after DELETE when %s', async (when) => {
    const named = { filename: 'Dr Eve, HIV test.wav' };
    const upload = when === 'granted' ? (await quiet.granted(named)).upload : await quiet.uploaded(named);
    if (when === 'refused') await quiet.outcome(upload, 'refusal', { refusal: { reason: 'audio_unsupported' } });
    if (when === 'done') await quiet.outcome(upload, 'transcript', { pieces: 1 });
    expect(await quiet.row(upload)).toMatchObject(named);
    await cancelUpload(office, upload);
    expect(JSON.stringify([...quiet.table.of('acme')])).not.toContain('Eve');
    expect((await listUploads(office, { tenant: 'acme', after: undefined, limit: 9 })).uploads).toMatchObject([
      { id: upload.id },
    ]);
    const { seq } = await quiet.row(upload);
    await cancelUpload(office, upload);
    expect((await quiet.row(upload)).seq).toBe(seq);
  });
});

describe('questions for news', () => {
  const query = (wait: number) => ({ query: new URLSearchParams({ after: '1000', wait: String(wait) }) });

  it('C11 concurrent polls of one upload share one read; a tenant’s are bounded', async () => {
    const upload = await quiet.uploaded();
    let looks = 0;
    const ask = (wait: number, tenant = 'acme') =>
      longPoll(office, { ...upload, tenant }, () => getUpload(office, upload).finally(() => looks++), query(wait));
    const waiting = Array.from({ length: UPLOAD_FOLLOWERS_MAX }, () => ask(1));
    expect((await ask(1)).status).toBe(429);
    expect((await ask(0)).status).toBe(204);
    const other = ask(1, 'other');
    quiet.wait(2_000);
    expect((await Promise.all([...waiting, other])).map(({ status }) => status)).toEqual(
      [...waiting, other].map(() => 204),
    );
    // One at first and one at the end, that of who did not wait, and that of the other tenant.
    expect(looks).toBe(4);
    expect((await ask(0)).status).toBe(204);
  });
});

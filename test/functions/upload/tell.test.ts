// Who is told of an upload: receivers of notices, and those who ask for news.
import { beforeEach, describe, expect, it } from 'vitest';
import { see } from '../../../functions/upload/asked.ts';
import { decideNext, deliver } from '../../../functions/upload/deliver.ts';
import { followNews } from '../../../functions/upload/follow-news.ts';
import type { Office } from '../../../functions/upload/office.ts';
import { isPublicAddress, type Posted } from '../../../functions/upload/post.ts';
import { MINUTE } from '../../../functions/upload/record.ts';
import { limits } from '../../../shared/limits.ts';
import type { NewUpload } from '../../../shared/upload/contract.ts';
import { Quiet } from './quiet.ts';

let quiet: Quiet;
let office: Office;
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
    for (let tries = 0; tries < limits.webhookTries.value; tries += 1) {
      expect((await quiet.row(upload)).notice).toBe('pending');
      await deliver(office, post(late), { ...upload, run: 1, tries });
      // One that comes twice is not sent twice.
      await deliver(office, post([]), { ...upload, run: 1, tries });
      quiet.wait(10 * 60 * MINUTE);
    }
    expect((await quiet.row(upload)).notice).toBe('failed');
    const deliveries = [...quiet.table.of('acme').keys()].filter((key) => key.startsWith('n!'));
    expect(deliveries).toHaveLength(limits.webhookTries.value);
  });

  it('T4 of a tenant whose receivers hang never keep those of another waiting', async () => {
    const [at, pause] = [limits.webhooksAtOnce.value, limits.webhookSilenceMs.value];
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
    // What was put off is still to be told, as the first delivery that it would have been.
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

describe('questions for news', () => {
  const query = (wait: number) => ({ query: new URLSearchParams({ after: '1000', wait: String(wait) }) });

  it('C11 of many about one upload are one look at its row, and a tenant has so many open', async () => {
    const upload = await quiet.uploaded();
    let looks = 0;
    const ask = (wait: number, tenant = 'acme') =>
      followNews(office, { ...upload, tenant }, () => see(office, upload).finally(() => looks++), query(wait));
    const waiting = Array.from({ length: limits.uploadFollowers.value }, () => ask(1));
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

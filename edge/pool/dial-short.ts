import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { callAfter, type Surroundings } from '../clock.ts';
import type { Settings } from '../settings.ts';
import { addressOf, type Call, type Line, refusalOf, sealedLength } from './dial.ts';
import { enterLane } from './lanes.ts';

/**
 * The same as `dial` in fewer steps, for a body of at most `limits.lanePackBytes` that is here whole: it goes along with
 * what says what it is in one record. `now`: ms since 1970. An answer that
 * says that it is short is read and opened here, too: `Line.whole`.
 */
export async function dialShort(
  { entry, facts, head, startMs = limits.answerStartMs.value }: Pick<Call, 'entry' | 'facts' | 'head' | 'startMs'>,
  body: Uint8Array,
  now: number,
  settings: Settings,
  surroundings: Surroundings,
): Promise<Result<Line>> {
  const address = addressOf(entry, settings);
  if (!address.ok) return address;
  const entering = enterLane(entry, facts, head, settings, now);
  const entered = entering instanceof Promise ? await entering : entering;
  if (!entered.ok) return entered;
  const { start, sealer, opener, headers, freshSeal, suite } = entered.value;
  const sealed = (await sealer.pack([start[0], start[1], body], true)) as Uint8Array<ArrayBuffer>;
  const request = fetch(address.value, { method: 'POST', headers, body: sealed, redirect: 'manual' });
  const said = await hear(request, startMs, surroundings);
  if (!said.ok) return said;
  const { response, length, body: read } = said.value;
  if (length === null) return no(await refusalOf(response, facts.agent));
  const line = { response, length, opener, freshSeal, suite };
  if (!read) return ok(line);
  if (!read.ok) return ok({ ...line, whole: read });
  const opened = await opener.openWhole(new Uint8Array(read.value));
  const whole = opened.ok ? opened : lost(opened.refusal.detail ?? 'the answer cannot be opened');
  return ok({ response, length, opener, freshSeal, suite, whole });
}

const lost = (detail: string): Result<never> => no(refuse('pool_lost', undefined, detail));

interface Said {
  readonly response: Response;
  /** As `sealedLength` tells it. */
  readonly length: number | undefined | null;
  /** All of a short answer, or why not. */
  readonly body: Result<ArrayBuffer> | undefined;
}

/** Returns an answer's head within `startMs`, and all of a short one within `limits.answerSilenceMs` from there. */
function hear(request: Promise<Response>, startMs: number, surroundings: Surroundings): Promise<Result<Said>> {
  return new Promise((resolve) => {
    const cancel = callAfter(startMs, () => resolve(lost('no answer in time')), surroundings);
    const onHead = (response: Response) => {
      const length = sealedLength(response);
      const tell = (body: Said['body']) => resolve(ok({ response, length, body }));
      if (!isShort(length)) {
        cancel();
        return tell(undefined);
      }
      const late = callAfter(limits.answerSilenceMs.value, () => tell(lost('silent for too long')), surroundings);
      cancel();
      response.arrayBuffer().then(
        (bytes) => {
          late();
          tell(ok(bytes));
        },
        () => {
          late();
          tell(lost('the answer ended early'));
        },
      );
    };
    request.then(onHead, () => {
      cancel();
      resolve(lost('not reachable'));
    });
  });
}

/** The agent said how long the answer is: it had all of it before it sent the first byte. */
const isShort = (length: number | undefined | null): boolean =>
  typeof length === 'number' && length <= limits.answerBytes.value;

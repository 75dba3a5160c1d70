// Shows published checkpoints to witnesses every two seconds. The log never waits for them: cosignatures are
// added after publication.
import { latestAt } from '../../../shared/audit/judge.ts';
import { openNoteKey } from '../../../shared/audit/note-key.ts';
import type { LogContext } from '../context/log-context.ts';
import { LOG_TICK_MS } from '../limits.ts';
import { newestState } from '../log/acknowledge.ts';
import { markDiverged, readDiverged } from '../log/diverged.ts';
import { dropDoubt, storeDoubt } from '../log/doubted.ts';
import { checkpointName, cosignedName, refusedName, signedName, witnessedName } from '../log/log-names.ts';
import { headOf, putForward } from '../log/publish-checkpoint.ts';
import { readTileOf } from '../log/read-tile.ts';
import { isWithin } from '../log/rounds.ts';
import { subtreesOf } from '../log/subtree.ts';
import { countedOf, openJudgeNow, signatureCount } from './count-signatures.ts';
import { evaluateDoubt, type WitnessedLog } from './judge-witness.ts';
import {
  fetchWitnessed,
  type Get,
  type Post,
  requestCosignature,
  type Witness,
  type WitnessAnswer,
} from './request-cosignature.ts';

const yearOfLog = (origin: string): number => Number(origin.split('/').at(-1));

type WitnessContext = Pick<LogContext, 'store' | 'policy' | 'now' | 'log'>;

const post: Post = (url, body, signal) => fetch(url, { method: 'POST', body, signal, redirect: 'error' });
const get: Get = (url, signal) => fetch(url, { signal, redirect: 'error' });

/** Shows logs. What a witness has seen is remembered, as long as the process lives. */
export class Witnessing {
  readonly #context: WitnessContext;
  readonly #post: Post;
  readonly #get: Get;
  /** By witness and log: size that it has seen. */
  readonly #stands = new Map<string, number>();
  /** By witness and zone: last reported refusal state. */
  readonly #refuses = new Map<string, boolean>();
  /** By witness and zone: time of the last report of a claim, -1 when there is none. */
  readonly #doubts = new Map<string, number>();
  /** By log: sizes with all signatures that they will get. */
  readonly #settled = new Map<string, number>();

  constructor(context: WitnessContext, send: Post = post, look: Get = get) {
    this.#context = context;
    this.#post = send;
    this.#get = look;
  }

  /** Shows the log of a zone. Returns whether it has witnesses. */
  async show(zone: string): Promise<boolean> {
    const { store } = this.#context;
    const state = await newestState(store, zone);
    // Another witness must not sign the second history of a log that is not what it was.
    if (!state || (await readDiverged(store, zone))) return false;
    // The end of a year is shown as well, however soon the next one begins.
    const { previous } = state;
    const before = previous && (await this.#showLog(zone, previous.origin, yearOfLog(previous.origin)));
    return (await this.#showLog(zone, state.origin, state.year)) || before === true;
  }

  async #showLog(zone: string, origin: string, year: number): Promise<boolean> {
    const { store, policy, now, log } = this.#context;
    const logPolicy = policy(origin);
    const witnesses = logPolicy.witnesses.filter(({ url }) => url !== undefined);
    if (witnesses.length === 0) return false;
    const published = await store.read('state', checkpointName(zone, year));
    if (!published) return false;
    const { size } = headOf(published.bytes);
    // Equality, not "at least": a log that became shorter must be shown.
    if (this.#settled.get(origin) === size) return false;
    const signed = await store.read('log', signedName(zone, year, size));
    if (!signed) throw new Error(`${zone}/${year} of ${size}: it is published and not stored`);
    const judge = await openJudgeNow(logPolicy, now);
    const stored = await store.read('state', witnessedName(zone, year));
    const there = stored && headOf(stored.bytes).size === size ? stored : undefined;
    const counted = there && (await countedOf(there.bytes, logPolicy, judge));
    const seen = counted ?? signed.bytes;
    const known = new Set((await judge(seen))?.witnesses.map(({ name }) => name));
    const read = subtreesOf(size, readTileOf(store, zone, year));
    const about = { zone, origin, signed: { note: signed.bytes, size, read }, judge };
    const answers = await Promise.all(
      witnesses.map(async ({ name, key, url = '' }): Promise<Partial<WitnessAnswer>> => {
        if (known.has(name)) return {};
        return this.#request(about, name, { verifier: await openNoteKey(key), url });
      }),
    );
    const lines = answers.flatMap(({ line }) => line ?? []);
    if (answers.every((one) => one.why === undefined)) this.#settled.set(origin, size);
    // A stored note that no policy accepts is replaced even without a new signature.
    const spoilt = (there && !counted) || !(await judge(published.bytes));
    if (lines.length === 0 && !spoilt) return true;
    const note = new TextEncoder().encode(`${new TextDecoder().decode(seen)}${lines.join('')}`);
    const judged = await judge(note);
    if (!judged) {
      log({ what: 'unwitnessed', zone, detail: `${origin} of ${size} is not signed as that` });
      return true;
    }
    if (judged.quorum) await store.create('log', cosignedName(zone, year, size), note);
    const worth = (one: Uint8Array) => signatureCount(one, judge);
    if (lines.length > 0 || there) await putForward(store, witnessedName(zone, year), note, worth);
    await putForward(store, checkpointName(zone, year), note, worth);
    return true;
  }

  async #request(about: WitnessedLog, name: string, witness: Witness): Promise<Partial<WitnessAnswer>> {
    const { zone, origin, signed } = about;
    const place = `${name} ${origin}`;
    const options = { from: this.#stands.get(place) ?? 0, latest: latestAt(this.#context.now()) };
    const answer = await requestCosignature(witness, signed, this.#post, options).catch(
      (error: unknown): Partial<WitnessAnswer> => ({ why: error instanceof Error ? error.name : 'no reason given' }),
    );
    if (answer.size !== undefined) this.#stands.set(place, answer.size);
    await this.#storeRefusal(zone, name, answer);
    if (answer.line !== undefined) await this.#forgetDoubt(zone, name);
    if (answer.doubt) await this.#look(about, name, witness, answer.doubt);
    if (answer.why !== undefined) this.#context.log({ what: 'unwitnessed', zone, detail: `${name}: ${answer.why}` });
    return answer;
  }

  /** Stored, since another process may answer health requests. */
  async #storeRefusal(zone: string, name: string, { line, doubt }: Partial<WitnessAnswer>): Promise<void> {
    const refuses = line === undefined && doubt !== undefined && doubt.claimed === undefined;
    const place = `${name} ${zone}`;
    if ((line === undefined && !refuses) || this.#refuses.get(place) === refuses) return;
    const [{ store, now }, at] = [this.#context, refusedName(zone, name)];
    if (refuses) await store.create('state', at, new TextEncoder().encode(JSON.stringify({ v: 1, at: now() })));
    else await store.remove('state', at);
    this.#refuses.set(place, refuses);
  }

  /** Handles a witness that is ahead: another process has just shown it more, or this log has diverged. */
  async #look(
    about: WitnessedLog,
    name: string,
    witness: Witness,
    { claimed }: NonNullable<WitnessAnswer['doubt']>,
  ): Promise<void> {
    const { store, now, log } = this.#context;
    const { zone, origin } = about;
    const note = await fetchWitnessed(witness, origin, this.#get).catch(() => undefined);
    const doubt = { ...(claimed !== undefined && { claimed }), ...(note && { note }) };
    const found = await evaluateDoubt(store, about, doubt);
    if (!found) return;
    const { proven, why } = found;
    if (!proven) return this.#logDoubt(zone, name, why);
    const shown = note && new TextDecoder().decode(note);
    const mark = { v: 1, origin, at: now(), witness: name, why, ...(shown !== undefined && { note: shown }) } as const;
    if (await markDiverged(store, zone, mark)) log({ what: 'diverged', zone, detail: `${name}: ${why}` });
  }

  /** Logs an unproven claim once a minute while it lasts. */
  async #logDoubt(zone: string, name: string, why: string): Promise<void> {
    const { store, now, log } = this.#context;
    const [place, at] = [`${name} ${zone}`, now()];
    const last = this.#doubts.get(place) ?? -1;
    if (last >= 0 && isWithin(at, last, LOG_TICK_MS)) return;
    await storeDoubt(store, zone, { v: 1, at, witness: name, why });
    this.#doubts.set(place, at);
    log({ what: 'doubted', zone, detail: `${name}: ${why}` });
  }

  async #forgetDoubt(zone: string, name: string): Promise<void> {
    const place = `${name} ${zone}`;
    if (this.#doubts.get(place) === -1) return;
    await dropDoubt(this.#context.store, zone, name);
    this.#doubts.set(place, -1);
  }
}

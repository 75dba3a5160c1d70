import { z } from 'zod';
import { MiB } from '../../shared/bytes.ts';
import { publicText, refusals, refuse } from '../../shared/refusal.ts';
import { ok } from '../../shared/result.ts';
import { streamFormat } from '../../shared/stream/format.ts';
import { streamOptions } from '../../shared/stream/link.ts';
import { POSITION_BYTES, readPosition } from '../../shared/stream/position.ts';
import { isAbsent } from '../http/refuse-field.ts';
import { RESUME_TOKEN_CHARACTERS } from '../limits.ts';
import type {
  ClientCommand,
  ClientFrame,
  LiveProtocol,
  LiveProtocolFactory,
  Outcome,
  SessionEvent,
} from './live-protocol.ts';
import { readText } from './read-text.ts';

/** Unacknowledged audio of a client of /v1/stream: under STREAM_PACED_BYTES, so that nothing overflows. */
export const STREAM_CLIENT_BYTES = 3 * MiB;

const id = z
  .number()
  .int()
  .nonnegative()
  .max(2 ** 31);

/** Text messages of a client of `/v1/stream` (`shared/stream/PROTOCOL.md` §1). */
export const clientMessage = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('start'),
    v: z.literal(1),
    model: z.string().min(1).max(64),
    language: z.string().min(2).max(35).optional(),
    format: streamFormat,
    options: streamOptions.partial().optional(),
    resume: z.string().max(RESUME_TOKEN_CHARACTERS).optional(),
    next: z.number().int().nonnegative().optional(),
  }),
  z.object({ type: z.literal('finalize'), id }),
  z.object({ type: z.literal('clear'), id }),
  z.object({ type: z.literal('options'), options: streamOptions.partial() }),
  z.object({ type: z.literal('ping'), seen: z.number().int().nonnegative().optional() }),
  z.object({ type: z.literal('end') }),
]);
export type ClientMessage = z.infer<typeof clientMessage>;

const usual = { interim: true, endpointingMs: 500 } as const;

const invalid = (rule: string): ClientCommand[] => [{ type: 'close', refusal: refuse('frame_invalid', { rule }) }];

/** Adapter of `/v1/stream`, which passes session events on as they are. */
class AuricleStream implements LiveProtocol {
  readonly name = 'auricle-stream';
  readonly resumes = true;
  readonly acknowledges = true;
  #session = '';
  #request = '';
  #started = false;
  #hasStarted = false;
  #options: z.infer<typeof streamOptions> = usual;

  open({ id: session, request }: { id: string; request: string }): ClientFrame[] {
    this.#session = session;
    this.#request = request;
    return [];
  }

  receive(message: string | Uint8Array): ClientCommand[] {
    return typeof message === 'string' ? this.#receiveText(message) : this.#receiveAudio(message);
  }

  #receiveAudio(message: Uint8Array): ClientCommand[] {
    if (!this.#started) return invalid('audio came before start');
    if (message.length < POSITION_BYTES) return invalid('a binary message begins with six bytes of position');
    return [{ type: 'audio', audio: message.subarray(POSITION_BYTES), position: readPosition(message, 0) }];
  }

  #receiveText(text: string): ClientCommand[] {
    const json = readText(text);
    if (!json.ok) return [{ type: 'close', refusal: json.refusal }];
    const parsed = clientMessage.safeParse(json.value);
    if (!parsed.success) return invalid(ruleOf(parsed.error, json.value));
    const command = parsed.data;
    if (command.type === 'ping') {
      const alive: ClientCommand = { type: 'alive', ...(command.seen !== undefined && { seen: command.seen }) };
      return [alive, { type: 'reply', frames: ['{"type":"pong"}'] }];
    }
    if (command.type === 'start') return this.#start(command);
    if (!this.#started) return invalid('the first message is start');
    if (command.type === 'options') {
      this.#options = { ...this.#options, ...present(command.options) };
      return [{ type: 'options', options: this.#options }];
    }
    return [command];
  }

  #start(command: Extract<ClientMessage, { type: 'start' }>): ClientCommand[] {
    if (this.#started) return invalid('start came twice');
    this.#started = true;
    this.#options = { ...usual, ...present(command.options ?? {}) };
    const { model, language, format, resume, next } = command;
    const request = {
      model,
      format,
      options: this.#options,
      ...(language !== undefined && { language }),
      ...(resume !== undefined && { resume }),
      ...(next !== undefined && { next }),
    };
    return [{ type: 'start', request }];
  }

  render(event: SessionEvent): ClientFrame[] {
    if (event.type === 'resumed') return [this.#renderStarted({ position: event.position, time: event.time })];
    if (event.type !== 'ready') return [JSON.stringify(event)];
    const started = this.#hasStarted ? [] : [this.#renderStarted({ position: 0, time: 0 })];
    return [...started, JSON.stringify(event)];
  }

  #renderStarted(where: { position: number; time: number }): string {
    this.#hasStarted = true;
    const windowBytes = STREAM_CLIENT_BYTES;
    return JSON.stringify({ type: 'started', v: 1, session: this.#session, ...where, windowBytes });
  }

  close(ending: Outcome): { frames: ClientFrame[]; code: number; reason: string } {
    if ('final' in ending) return { frames: [JSON.stringify(ending.final)], code: 1000, reason: '' };
    const { refusal } = ending;
    const { reason } = refusal;
    const body = { type: 'refusal', reason, message: publicText(refusal), request: this.#request };
    return { frames: [JSON.stringify(body)], code: refusals[reason].close, reason: `${reason} ${this.#request}` };
  }
}

export const auricleStream: LiveProtocolFactory = () => ok(new AuricleStream());

/** Returns the members that are present, so that a patch removes nothing. */
const present = <T extends object>(patch: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined)) as never;

/** Returns the rule that a message breaks. It names members only, never their values. */
function ruleOf(error: z.ZodError, message: unknown): string {
  const path = error.issues[0]?.path ?? [];
  if (path.length === 0) return 'its shape is unknown';
  return `"${path.join('.')}" is ${isAbsent(message, path) ? 'missing' : 'not valid'}`;
}

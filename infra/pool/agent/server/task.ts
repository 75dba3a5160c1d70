import { z } from 'zod';
import { callTasks } from '../../../../shared/kserve/call.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Opened } from '../../../../shared/seal/records.ts';
import { answerDocument } from '../jobs/speech/document-task.ts';
import { answerOutcome } from '../jobs/transcription/outcome-task.ts';
import { serveCall } from '../kserve/serve-call.ts';
import type { AdmittedRequest, AgentRequest } from '../request/admitted-request.ts';
import { speak } from './speak.ts';
import { transcribe } from './transcribe.ts';

type Serve = (work: AgentRequest) => Promise<Result<undefined>>;

const tasks: Readonly<Record<string, Serve>> = {
  transcribe,
  speak,
  outcome: answerOutcome,
  document: answerDocument,
  ...Object.fromEntries(callTasks.map((task) => [task, serveCall])),
};

/** Tasks that begin when the engine has a slot for them; the others begin at once. */
const queued: ReadonlySet<string> = new Set(['transcribe', 'speak', 'infer', 'generate', 'generate_stream']);

const tasked = z.object({ task: z.string() });

function readHead(record: Result<Opened> | undefined): Result<unknown> {
  if (!record) return no(refuse('seal_broken', undefined, 'no head'));
  if (!record.ok) return record;
  try {
    return ok(JSON.parse(new TextDecoder().decode(record.value.plaintext)));
  } catch {
    return no(refuse('seal_broken', undefined, 'head is not JSON'));
  }
}

/** Says `ready`, reads the head and does what it asks for. Emits everything but a refusal. */
export async function serveTask(request: AdmittedRequest): Promise<Result<undefined>> {
  const { name, revision } = request.model.description;
  await request.answer.send({ type: 'ready', agent: request.context.agent, model: name, revision });
  const first = await request.records.next();
  const head = readHead(first.done ? undefined : first.value);
  if (!head.ok) return head;
  const task = tasked.safeParse(head.value).data?.task ?? '';
  const serve = Object.hasOwn(tasks, task) ? tasks[task] : undefined;
  if (!serve) return no(refuse('seal_broken', undefined, 'head is not understood'));
  if (!queued.has(task)) request.onStart?.();
  return serve({ ...request, head: head.value });
}

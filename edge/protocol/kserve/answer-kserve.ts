import type { Snapshot } from '../../../shared/pool/heartbeat.ts';
import { admit } from '../../auth/admit.ts';
import type { RequestContext } from '../../context.ts';
import { refuseThrown } from '../../http/refuse-thrown.ts';
import { healthOf, takesWork } from '../../routing/agent-health.ts';
import { readModelNames } from '../../routing/model-names.ts';
import { readSnapshots } from '../../routing/snapshot.ts';
import { type Question, readAddress } from './address.ts';
import { callModel, type ModelCall } from './call.ts';
import { refuseKserve } from './render-answer.ts';

/** Triton's name for each part of the protocol that is served here. */
const extensions = ['binary_tensor_data', 'parameters', 'sequence', 'generate', 'model_configuration', 'statistics'];

/** Everything below `/v2`: the Open Inference Protocol as Triton speaks it, for `tritonclient` unchanged. */
export async function answerKserve(request: Request, context: RequestContext): Promise<Response> {
  const address = readAddress(request.method, new URL(request.url).pathname);
  if (!address.ok) return refuseKserve(address.refusal);
  try {
    return await answer(request, address.value, context);
  } catch (error) {
    return refuseKserve(refuseThrown(context.id, error));
  }
}

async function answer(request: Request, question: Question, context: RequestContext): Promise<Response> {
  switch (question.about) {
    case 'server':
      return Response.json({ name: 'auricle', version: '0.1.0', extensions });
    case 'live':
      return ready(true);
    case 'ready':
      return ready(await isServed(context, context.settings.zones));
    case 'model': {
      const { operation, ...model } = question;
      if (operation !== 'ready') return callModel(request, { ...model, operation }, context);
      return model.version === undefined
        ? isReady(request, model.model, context)
        : isVersionReady(request, model, context);
    }
  }
}

/** Not ready is 400 and nothing else, and the body is empty: clients look at the status. */
const ready = (good: boolean): Response => new Response(null, { status: good ? 200 : 400 });

/** Whether the caller could use the model right now, in its own zones. */
async function isReady(request: Request, model: string, context: RequestContext): Promise<Response> {
  const claims = await admit(request, ['infer', 'models'], context);
  if (!claims.ok) return refuseKserve(claims.refusal);
  const zones = context.settings.zones.filter((zone) => claims.value.zones.includes(zone));
  const names = await readModelNames(claims.value, context);
  return ready(await isServed(context, zones, names(model)));
}

/** Queries an agent for the version: descriptions name none. */
async function isVersionReady(request: Request, model: Omit<ModelCall, 'operation'>, context: RequestContext) {
  const described = await callModel(request, { ...model, operation: 'metadata' }, context);
  if (described.status !== 200 && described.status !== 404) return described;
  await described.body?.cancel();
  return ready(described.status === 200);
}

async function isServed({ env, runtime }: RequestContext, zones: readonly string[], model?: string) {
  const snapshots = await readSnapshots(zones, env.ROSTER, runtime);
  return snapshots.some((snapshot) => serves(snapshot, model));
}

const serves = ({ at, entries }: Snapshot, model: string | undefined): boolean =>
  entries.some(
    ({ description, load, heard }) =>
      takesWork(healthOf({ load, heard }, at)) &&
      description.models.some(
        ({ name, stage }) => (stage === 'full' || stage === 'canary') && (model === undefined || name === model),
      ),
  );

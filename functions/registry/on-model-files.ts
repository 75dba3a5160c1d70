// Endpoints of the model store (shared/registry/model-files.ts).
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import type { z } from 'zod';
import { jsonOf } from '../../shared/json-text.ts';
import { refuse } from '../../shared/refusal.ts';
import {
  FILE_REQUEST_BYTES_MAX,
  fileProofOf,
  fileRequest,
  newFiles,
  sentFileRequest,
} from '../../shared/registry/model-files.ts';
import type { EdgeHandler } from '../caller/from-edge.ts';
import { readAgentCall } from '../caller/read-agent-call.ts';
import { answerNo, answerResult, answerUnlike } from '../http/answer.ts';
import { readJson } from '../http/read-json.ts';
import { type ModelContext, requireModels } from './model-context.ts';
import { addressFiles, listFiles, planFiles } from './model-files.ts';
import { ofRevision } from './on-models.ts';

/** POST /api/models/{model}/revisions/{revision}/files */
export const onPlanFiles = (context: ModelContext | undefined): EdgeHandler =>
  ofRevision(context, async (known, model, revision, { request }) => {
    const sent = newFiles.safeParse(await readJson(request));
    if (!sent.success) return answerUnlike(sent.error);
    return answerResult(await planFiles(known, model, revision, sent.data.files));
  });

/** GET /api/models/{model}/revisions/{revision}/files */
export const onListFiles = (context: ModelContext | undefined): EdgeHandler =>
  ofRevision(context, async (known, model, revision) => answerResult(await listFiles(known, model, revision)));

const body = {
  schema: sentFileRequest,
  bytesMax: FILE_REQUEST_BYTES_MAX,
  jobOf: ({ request }: z.infer<typeof sentFileRequest>) => fileProofOf(request),
};

/** POST /api/agents/models: addresses that read the files of one revision, for an attested agent. */
export const onAgentFiles =
  (context: ModelContext | undefined) =>
  async (request: HttpRequest): Promise<HttpResponseInit> => {
    const needed = requireModels(context);
    if (!needed.ok) return answerNo(needed.refusal);
    const known = needed.value;
    const call = await readAgentCall(request, known, body);
    if (!call.ok) return answerNo(call.refusal);
    const read = fileRequest.safeParse(jsonOf(call.value.sent.request));
    if (!read.success) return answerNo(refuse('json_invalid'));
    return answerResult(await addressFiles(known, read.data.model, read.data.revision));
  };

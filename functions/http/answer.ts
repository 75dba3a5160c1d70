// HTTP answers, and the one path of refusals.
import type { HttpResponseInit } from '@azure/functions';
import type { z } from 'zod';
import { type Refusal, refusals, refuse } from '../../shared/refusal.ts';
import type { Result } from '../../shared/result.ts';

const headers = { 'cache-control': 'no-store' };

export const answer = (status: number, jsonBody: unknown): HttpResponseInit => ({ status, jsonBody, headers });

/** Sends reason and parameters; the detail is for our log. */
export const answerNo = ({ reason, params }: Refusal): HttpResponseInit =>
  answer(refusals[reason].status, { error: { reason, ...(params && { params }) } });

/** Refuses a body that does not match the contract with the edge. */
export const answerUnlike = ({ issues: [issue] }: z.ZodError): HttpResponseInit =>
  answerNo(refuse('field_invalid', { field: issue?.path.join('.') || 'body', rule: 'it is not as agreed' }));

export const answerResult = <T>(result: Result<T>, status = 200): HttpResponseInit =>
  result.ok ? answer(status, result.value) : answerNo(result.refusal);

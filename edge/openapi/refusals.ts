import { publicText, type Reason, refusals } from '../../shared/refusal.ts';
import { json, requestId } from './parts.ts';

const everyone: readonly Reason[] = ['method_wrong', 'internal', 'misconfigured', 'storage_full'];
export const identified: readonly Reason[] = [
  'token_missing',
  'token_invalid',
  'token_expired',
  'audience_wrong',
  'identity_unavailable',
  'scope_missing',
];
/** Refusals of the tenant's quota and its record. */
export const allowance = [
  'allowance_requests',
  'allowance_concurrent',
  'allowance_seconds',
  'audit_unavailable',
] as const satisfies readonly Reason[];
/** Refusals of a request that goes to an agent. */
export const routed = [
  'no_pool',
  'edge_busy',
  'pool_busy',
  'pool_lost',
  'engine_failed',
  'deadline_passed',
] as const satisfies readonly Reason[];
export const transcriptionRefusals: readonly Reason[] = [
  ...identified,
  'language_forbidden',
  'residency_mismatch',
  'sealing_required',
  'allowance_requests',
  'allowance_concurrent',
  'allowance_seconds',
  'model_unknown',
  'model_unfit',
  'language_unknown',
  'language_needed',
  'language_uncertain',
  'field_invalid',
  'field_missing',
  'hints_missing',
  'hints_late',
  'hints_conflict',
  'form_invalid',
  'content_type_invalid',
  'content_type_wrong',
  'body_too_large',
  'client_slow',
  'audio_empty',
  'audio_truncated',
  'audio_invalid',
  'audio_unsupported',
  'audio_too_long',
  ...routed,
  'audit_unavailable',
];

/** Refusals of a recording that becomes an upload. */
export const takingUpload = [
  'uploads_closed',
  'uploads_unavailable',
  'storage_unavailable',
  'idempotency_key_running',
  'idempotency_key_reused',
  'upload_exists',
  'uploads_waiting',
  'uploads_bytes',
  'upload_too_large',
  'callback_invalid',
] as const satisfies readonly Reason[];

const retryHeaders = { 'retry-after': { $ref: '#/components/headers/RetryAfter' } };

/** Returns one response for each status, with its codes and their texts. */
export function errors(
  reasons: readonly Reason[],
  shape: 'Error' | 'DeepgramError' | 'KserveError' | 'TorchserveError' = 'Error',
): Record<string, unknown> {
  const byStatus = new Map<number, Reason[]>();
  for (const reason of [...reasons, ...everyone]) {
    const { status } = refusals[reason];
    byStatus.set(status, [...(byStatus.get(status) ?? []), reason]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes.map((reason) => `\`${reason}\`: ${publicText({ reason })}`).join('\n\n'),
        headers: { ...requestId, ...(codes.some((code) => refusals[code].retry !== 'never') && retryHeaders) },
        content: json(shape),
      },
    ]),
  );
}

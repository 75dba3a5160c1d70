// Reports whether a leaf belongs to a tenant: leaves about it, all reports of its own outboxes, and the log's
// statements about those, so that a tenant can see losses of its outboxes. The first and last leaf of a log
// belong to all tenants.

export interface Ownership {
  readonly type: string;
  readonly p: string;
  readonly tn?: string | undefined;
  readonly outbox?: unknown;
}

/** Reports an outbox of one of the tenant's Gates. */
export const isOwnOutbox = (producer: string, tenant: string): boolean => producer.startsWith(`gate/${tenant}/`);

export function belongsTo(tenant: string, { type, p, tn, outbox }: Ownership): boolean {
  if (tn !== undefined) return tn === tenant;
  if (type === 'shard.open' || type === 'shard.close') return true;
  if (type === 'producer.gap' || type === 'producer.late')
    return typeof outbox === 'string' && isOwnOutbox(outbox, tenant);
  return isOwnOutbox(p, tenant);
}

import { z } from 'zod';
import { isTenantName, scopes } from './claims.ts';

/** Scopes that reach beyond one tenant. An issuer grants them only where its entry names them. */
const FLEET_SCOPES: readonly string[] = ['operate', 'pool'];

const grantable = [...scopes, 'pool'] as const;

/** Claims that an entry of ISSUERS accepts from its issuer, at the edge and in the functions. */
export const issuerBounds = {
  /** Tenants that the issuer may speak for; absent: any. */
  tenants: z
    .array(z.string().refine((name) => name === '*' || isTenantName(name), 'must be a tenant or *'))
    .min(1)
    .optional(),
  /** Scopes that the issuer may grant; others in its tokens count for nothing. */
  scopes: z
    .array(z.enum(grantable))
    .min(1)
    .default(() => grantable.filter((scope) => !FLEET_SCOPES.includes(scope))),
  /** Media types in the header of its tokens (RFC 9068 §2.1, RFC 7519 §5.1); `none`: tokens without a type. */
  types: z
    .array(z.enum(['at+jwt', 'JWT', 'none']))
    .min(1)
    .default(['at+jwt', 'JWT']),
};

const bounds = z.object(issuerBounds);
export type IssuerBounds = z.infer<typeof bounds>;

export const allowsTenant = ({ tenants }: Pick<IssuerBounds, 'tenants'>, tenant: unknown): boolean =>
  tenants === undefined || tenants.includes('*') || (typeof tenant === 'string' && tenants.includes(tenant));

export const allowsScope = ({ scopes: granted }: Pick<IssuerBounds, 'scopes'>, scope: string): boolean =>
  granted.some((one) => one === scope);

/** Media types are compared without case and without `application/` (RFC 7515 §4.1.9). */
export function allowsType({ types }: Pick<IssuerBounds, 'types'>, typ: string | undefined): boolean {
  if (typ === undefined) return types.includes('none');
  const type = typ.toLowerCase().replace(/^application\//, '');
  return types.some((one) => one !== 'none' && one.toLowerCase() === type);
}

/** Returns what is wrong with all entries together: of several issuers each could speak for the tenants of the others. */
export function issuerProblems(entries: readonly (IssuerBounds & { readonly issuer: string })[]): readonly string[] {
  const several = new Set(entries.map(({ issuer }) => issuer)).size > 1;
  const unbounded = entries.some(
    ({ tenants, scopes: granted }) => tenants === undefined && granted.some((scope) => scope !== 'pool'),
  );
  const joins = entries.some((entry) => allowsScope(entry, 'pool'));
  return [
    ...(several && unbounded ? ['needs tenants in each entry, since there are several issuers'] : []),
    ...(joins ? [] : ['has no entry with the scope pool, so no agent can join']),
  ];
}

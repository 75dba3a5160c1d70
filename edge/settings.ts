import type { JSONWebKeySet, JWK } from 'jose';
import type { AttestationPolicy } from '../shared/seal/attestation-policy.ts';
import { applyRules, describeProblems, type Parsed, type Problem, parseSettings } from '../shared/settings/problem.ts';
import { grantScopes } from '../shared/tenant/claims.ts';
import { developmentRules, equalKeyProblems, productionRules } from './check-settings.ts';
import type { GateMethods, RosterMethods } from './objects.ts';
import { type AuditLog, type EdgeValues, GRANTS, type Issuer, settingsSchema } from './settings-schema.ts';

/** Bindings of the Worker. Only this file reads the text bindings. */
export interface Bindings {
  readonly GATE: ObjectNamespace<GateMethods>;
  readonly ROSTER: ObjectNamespace<RosterMethods>;
  /** Live sessions; isolates call their `fetch` only. */
  readonly STREAM: ObjectNamespace<object>;
  readonly ISSUERS: string;
  readonly ATTESTATION: string;
  readonly TICKET_KEY: string;
  readonly GRANT_KEY?: string | undefined;
  readonly EDGE_KEY?: string | undefined;
  readonly ZONES: string;
  readonly MODE: string;
  readonly FUNCTIONS_URLS?: string | undefined;
  readonly SERVICE_KEYS?: string | undefined;
  readonly AUDIT_LOGS?: string | undefined;
  readonly AUDIT_WAIT_MS?: string | undefined;
  readonly LOG_REQUESTS?: string | undefined;
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined;
  readonly OTEL_EXPORTER_OTLP_HEADERS?: string | undefined;
  readonly OTEL_TRACES_SAMPLER_ARG?: string | undefined;
}

export interface TraceSettings {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Part of the requests without a caller's trace that begin one, 0 to 1. */
  readonly ratio: number;
}

export interface Settings {
  readonly issuers: readonly Issuer[];
  readonly attestation: AttestationPolicy;
  readonly ticketKey: JWK;
  readonly grantKey: JWK | undefined;
  /** Signs calls to the functions; present where `functionsUrls` has an entry. */
  readonly edgeKey: JWK | undefined;
  readonly zones: readonly string[];
  /** Zone → base URL of its functions, without a slash at the end. */
  readonly functionsUrls: ReadonlyMap<string, string>;
  readonly serviceKeys: JSONWebKeySet | undefined;
  /** Zone → its audit log. */
  readonly auditLogs: ReadonlyMap<string, AuditLog>;
  /** Milliseconds. */
  readonly auditWaitMs: number;
  readonly logRequests: boolean;
  /** Collector of spans; absent, no trace begins. */
  readonly traces: TraceSettings | undefined;
  readonly mode: 'development' | 'production';
}

const textNames = Object.keys(settingsSchema.shape) as (keyof typeof settingsSchema.shape)[];
type TextBindings = Pick<Bindings, (typeof textNames)[number]>;

interface Inspected {
  /** Absent while there are problems. */
  readonly settings: Settings | undefined;
  readonly problems: readonly Problem[];
}

const inspected = new WeakMap<TextBindings, Inspected>();

/** Returns the problems that keep this isolate from serving; computed once per isolate. */
export const settingProblems = (env: TextBindings): readonly Problem[] => inspect(env).problems;

/** Returns the settings of this isolate. Throws when they have problems: `settingProblems` is checked before. */
export function readSettings(env: TextBindings): Settings {
  const found = inspect(env);
  if (!found.settings) throw new Error(`settings: ${describeProblems(found.problems)}`);
  return found.settings;
}

function inspect(env: TextBindings): Inspected {
  const known = inspected.get(env);
  if (known) return known;
  const parsed = parseSettings(settingsSchema, Object.fromEntries(textNames.map((name) => [name, env[name]])));
  const problems = problemsOf(parsed);
  const found = { settings: problems.length === 0 ? combine(parsed.data as EdgeValues) : undefined, problems };
  inspected.set(env, found);
  return found;
}

function problemsOf(parsed: Parsed<EdgeValues>): readonly Problem[] {
  if (parsed.data.MODE === 'development') return applyRules(developmentRules, parsed);
  return [...applyRules(productionRules, parsed), ...equalKeyProblems(parsed.data)];
}

/** The edge as an issuer of short-lived tokens, verified by their public key like those of any issuer. */
function grantIssuer({ kty, crv, x, y, kid }: JWK): Issuer {
  const key = { kty, crv, x, y, ...(kid !== undefined && { kid }) } as JWK;
  return {
    ...GRANTS,
    jwks: { keys: [key] },
    algorithms: ['ES256'],
    scopes: [...grantScopes],
    types: ['at+jwt'],
  };
}

const tracesOf = (data: EdgeValues): TraceSettings | undefined =>
  data.OTEL_EXPORTER_OTLP_ENDPOINT === undefined
    ? undefined
    : {
        endpoint: data.OTEL_EXPORTER_OTLP_ENDPOINT,
        headers: data.OTEL_EXPORTER_OTLP_HEADERS ?? {},
        ratio: data.OTEL_TRACES_SAMPLER_ARG,
      };

function combine(data: EdgeValues): Settings {
  return {
    issuers: [...data.ISSUERS, ...(data.GRANT_KEY ? [grantIssuer(data.GRANT_KEY)] : [])],
    // Self-issued attestations count only when MODE and ATTESTATION both allow them.
    attestation: { ...data.ATTESTATION, development: data.ATTESTATION.development && data.MODE === 'development' },
    ticketKey: data.TICKET_KEY,
    grantKey: data.GRANT_KEY,
    edgeKey: data.EDGE_KEY,
    zones: data.ZONES,
    functionsUrls: new Map(
      Object.entries(data.FUNCTIONS_URLS ?? {}).map(([zone, url]) => [zone, url.replace(/\/$/, '')]),
    ),
    serviceKeys: data.SERVICE_KEYS as JSONWebKeySet | undefined,
    auditLogs: new Map(Object.entries(data.AUDIT_LOGS ?? {})),
    auditWaitMs: data.AUDIT_WAIT_MS,
    logRequests: data.LOG_REQUESTS === 'true',
    traces: tracesOf(data),
    mode: data.MODE,
  };
}

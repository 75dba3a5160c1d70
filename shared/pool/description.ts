import { z } from 'zod';
import { residency } from './residency.ts';

const name = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/);

/** Tiers of a revision that an engine has not loaded, the fastest first. `blob`: the agent has no file of it. */
export const tiers = ['ram', 'ssd', 'blob'] as const;

/** A revision of a model at an agent. */
export const modelDescription = z.object({
  /** Name that callers use, an alias such as `reference-en`. */
  name,
  /** `infer`: nothing but tensors. Models of other tasks serve tensors, too. */
  task: z.enum(['transcribe', 'synthesize', 'infer']),
  /** Family whose members differ in language: a request for the family gets the member of its language. */
  family: name.optional(),
  /** The model tells languages apart: the agent runs it for requests that name none. Its task is `infer`. */
  detects: z.literal(true).optional(),
  /** BCP 47 tags, primary subtag first: `en` also serves `en-GB`. `zxx`: no language; `und`: undetermined. */
  languages: z.array(z.string().min(2).max(35)).min(1),
  /** Digest of the files that make up the revision: `sha256:<64 hex>`. */
  revision: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  precision: z.enum(['fp32', 'fp16', 'int8']),
  stage: z.enum(['develop-verify', 'grey', 'canary', 'full', 'retired']),
  /** Seconds since 1970 at which the revision came to this agent; OpenAI's `created`. */
  loaded: z.number().int().nonnegative(),
  /** The model serves live streams, too. */
  live: z.boolean().optional(),
  /** Speech that it was trained on: recordings of people, or synthetic voices only. Absent: its author does not say. */
  hears: z.enum(['people', 'synthetic']).optional(),
  /** Names of the speakers of a voice, the default first. */
  voices: z.array(z.string().max(64)).optional(),
  /** SSML elements that a voice takes. */
  ssml: z.array(z.string().max(64)).optional(),
  /** Tier of the files while the engine has not loaded them. Absent: the revision is loaded. */
  tier: z.enum(tiers).optional(),
  /** Absent: the agent does not decide what its engine loads. */
  residency: residency.optional(),
});

/** Description of an agent, fixed from its boot to its end. */
export const agentDescription = z.object({
  /** This agent instance, unique in the fleet. */
  agent: name,
  /** The regional pool it belongs to, for example `aks-westeurope`. */
  pool: name,
  /** Residency zone; constraints compare this. */
  zone: name,
  region: name,
  platform: z.enum(['AKS', 'EKS', 'other']),
  /** Address of the agent for the edge. TLS outside development. */
  endpoint: z.url({ protocol: /^https?$/ }),
  accelerator: z.enum(['gpu', 'cpu']),
  /** Accelerator by its product name, such as `h100` or `l4`. Absent: its operator does not say. */
  device: name.optional(),
  /** US dollars an hour of this agent and its engine costs. Absent: its operator does not say. */
  price: z.number().nonnegative().max(1_000).optional(),
  /** Place of the region, degrees north and east (WGS 84). Absent: its operator does not say. */
  location: z.object({ latitude: z.number().min(-90).max(90), longitude: z.number().min(-180).max(180) }).optional(),
  /** Requests the engine works on at once. */
  slots: z.number().int().positive(),
  /** Live streams it takes at once. Agents that know of none do not say. */
  streams: z.number().int().positive().optional(),
  /** SFrame cipher suites the agent opens (RFC 9605 registry). */
  suites: z.array(z.number().int()).min(1),
  /** One entry for each revision: a name may occur several times. */
  models: z.array(modelDescription),
});

export type ModelDescription = z.infer<typeof modelDescription>;
export type AgentDescription = z.infer<typeof agentDescription>;

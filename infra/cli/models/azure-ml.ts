// Converts revisions to and from model versions of Azure Machine Learning registries
// (Microsoft.MachineLearningServices/registries/models/versions), so that tools that read that shape can show
// them. `properties` carries the digest and the signature. A stage is exported and never imported: no gate
// was passed here.
import { z } from 'zod';
import type { StoredRevision } from '../../../shared/registry/contract.ts';
import { bundle } from '../../../shared/registry/signature-bundle.ts';
import { type Standing, showStanding } from '../../../shared/registry/stage.ts';

const REVISION = 'auricle.revision';
const SIGNATURE = 'auricle.signature';
const TYPE = 'Microsoft.MachineLearningServices/registries/models/versions';

const texts = z.record(z.string(), z.string());

const modelVersion = z.looseObject({
  /** The version. */
  name: z.string(),
  properties: z.looseObject({
    tags: texts.nullish(),
    properties: texts.nullish(),
  }),
});

export const modelVersions = z.looseObject({ value: z.array(modelVersion) });

/**
 * One version as `az ml model show` prints it and `az ml model create --file` reads it: JSON is valid YAML.
 */
const modelEntity = z.looseObject({
  name: z.string(),
  version: z.union([z.string(), z.number()]),
  tags: texts.nullish(),
  properties: texts.nullish(),
});

/** A list of either shape, or one entity: as versions. */
export const anyVersions = z.union([
  modelVersions.transform(({ value }) => value),
  z.array(modelEntity).transform((all) => all.map(asVersion)),
  modelEntity.transform((one) => [asVersion(one)]),
]);

const asVersion = ({ version, tags, properties }: z.infer<typeof modelEntity>) => ({
  name: String(version),
  properties: { tags, properties },
});

/** Maps a stage to the registry's stage names. */
const stageOf = ({ stage }: Standing): string =>
  ({ 'develop-verify': 'Development', grey: 'Staging', canary: 'Staging', full: 'Production', retired: 'Archived' })[
    stage
  ];

/** Builds a registry version. `version` counts from 1, in the order of registration. */
export function toModelVersion(registry: string, model: string, version: number, kept: StoredRevision) {
  const { revision, author, registered, stage, share, description, aliases } = kept;
  const standing: Standing = { stage, ...(share !== undefined && { share }) };
  return {
    id: `azureml://registries/${registry}/models/${model}/versions/${version}`,
    name: String(version),
    type: TYPE,
    systemData: { createdAt: new Date(registered).toISOString(), createdBy: author, createdByType: 'User' },
    properties: {
      description: description.description ?? '',
      tags: { ...description, 'auricle.standing': showStanding(standing), 'auricle.aliases': aliases.join(',') },
      properties: { [REVISION]: revision, [SIGNATURE]: JSON.stringify(kept.bundle) },
      flavors: {},
      isAnonymous: false,
      isArchived: stage === 'retired',
      modelType: 'triton_model',
      modelUri: `azureml://registries/${registry}/models/${model}/versions/${version}`,
      stage: stageOf(standing),
    },
  };
}

/**
 * Builds an entity for `az ml model create`. `path` is relative to the file that holds the entity; that file
 * belongs beside the signed files.
 */
export function toModelEntity(model: string, version: number, kept: StoredRevision) {
  const { name, properties: own } = toModelVersion('auricle', model, version, kept);
  const { description, tags, properties, stage, modelType } = own;
  return {
    $schema: 'https://azuremlschemas.azureedge.net/latest/model.schema.json',
    name: model,
    version: name,
    type: modelType,
    path: '.',
    description,
    tags,
    properties,
    stage,
  };
}

export interface ReadVersion {
  readonly version: string;
  readonly bundle: z.infer<typeof bundle>;
  readonly description: Record<string, string>;
}

/** Reads a version; `undefined` when it carries no signature of ours. */
export function readModelVersion(one: z.infer<typeof modelVersion>): ReadVersion | undefined {
  const { tags, properties } = one.properties;
  let signed: unknown;
  try {
    signed = JSON.parse(properties?.[SIGNATURE] ?? '');
  } catch {
    return undefined;
  }
  const parsed = bundle.safeParse(signed);
  if (!parsed.success) return undefined;
  const description = Object.fromEntries(Object.entries(tags ?? {}).filter(([name]) => !name.startsWith('auricle.')));
  return { version: one.name, bundle: parsed.data, description };
}

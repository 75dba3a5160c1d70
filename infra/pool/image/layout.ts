import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

/** A blob of a layout, as manifests name it (OCI image specification, descriptor.md). */
export interface Descriptor {
  readonly mediaType: string;
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
  readonly size: number;
}

export interface Layer extends Descriptor {
  /** Digest of the layer before compression. */
  readonly diffId: string;
}

/** Start of a container's process (OCI image specification, config.md). */
export interface ProcessConfig {
  readonly entrypoint: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** Largest layer, bytes: Node is 120 MB. */
const LAYER_BYTES_MAX = 2 ** 30;
/** User of both processes; the chart runs them as the same one. */
const USER = '10001:10001';

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** An OCI image layout in a folder (OCI image specification, image-layout.md). Equal contents have equal digests. */
export class Layout {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(path.join(folder, 'blobs/sha256'), { recursive: true });
  }

  /** Adds a folder as a layer: names sorted, owned by root, without times, readable by all. */
  addLayer(source: string): Layer {
    const order = ['--sort=name', '--format=ustar', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
    const options = { maxBuffer: LAYER_BYTES_MAX };
    const tar = execFileSync('tar', [...order, '--mode=u=rwX,go=rX', '-C', source, '-c', '.'], options);
    const blob = this.addBlob('application/vnd.oci.image.layer.v1.tar+gzip', gzipSync(tar, { level: 6 }));
    return { ...blob, diffId: digestOf(tar) };
  }

  /** Adds an image of layers, lowest first. `architecture` is Go's name of it: `amd64`, `arm64`. */
  addImage(architecture: string, layers: readonly Layer[], { entrypoint, labels }: ProcessConfig): Descriptor {
    const process = { User: USER, WorkingDir: '/app', Entrypoint: entrypoint, Env: ['PATH=/usr/bin'], Labels: labels };
    const config = this.addJson('application/vnd.oci.image.config.v1+json', {
      ...{ architecture, os: 'linux', config: process },
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    });
    const mediaType = 'application/vnd.oci.image.manifest.v1+json';
    const described = layers.map(({ diffId: _, ...descriptor }) => descriptor);
    return this.addJson(mediaType, { schemaVersion: 2, mediaType, config, layers: described });
  }

  /** Writes the index, which names the images. */
  finish(images: Readonly<Record<string, Descriptor>>): void {
    const manifests = Object.entries(images).map(([name, image]) => {
      return { ...image, annotations: { 'org.opencontainers.image.ref.name': name } };
    });
    const mediaType = 'application/vnd.oci.image.index.v1+json';
    writeFileSync(path.join(this.folder, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType, manifests }));
    writeFileSync(path.join(this.folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  }

  private addJson(mediaType: string, value: unknown): Descriptor {
    return this.addBlob(mediaType, Buffer.from(JSON.stringify(value)));
  }

  private addBlob(mediaType: string, bytes: Uint8Array): Descriptor {
    const digest = digestOf(bytes);
    writeFileSync(path.join(this.folder, 'blobs', digest.replace(':', '/')), bytes);
    return { mediaType, digest, size: bytes.length };
  }
}

// nginx in front of the upstream, configured as its documentation describes for keep-alive upstreams.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export function planNginx(folder: string, port: number, upstreamPort: number): string[] {
  mkdirSync(folder, { recursive: true });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${path.join(folder, kind)};`,
  );
  const file = path.join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `worker_processes 1; master_process off; daemon off;
pid ${path.join(folder, 'nginx.pid')}; error_log ${path.join(folder, 'error.log')} warn;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 100000000; client_max_body_size 64m; client_body_buffer_size 1m;
  ${temporary.join(' ')}
  upstream up { server 127.0.0.1:${upstreamPort}; keepalive 64; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`,
  );
  return ['nginx', '-c', file, '-p', folder, '-e', path.join(folder, 'error.log')];
}

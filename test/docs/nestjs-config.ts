import { Module, type DynamicModule } from '@nestjs/common';

/*
 * Stands in for `@nestjs/config`, which is not installed here: what the examples use of it, with the same types.
 */

export class ConfigService {
  get<T = unknown>(name: string): T | undefined {
    return process.env[name] as T | undefined;
  }

  getOrThrow<T = unknown>(name: string): T {
    const value = this.get<T>(name);
    if (value === undefined) throw new TypeError(`Configuration key "${name}" does not exist`);
    return value;
  }
}

@Module({})
export class ConfigModule {
  static forRoot({ isGlobal = false }: { isGlobal?: boolean } = {}): Promise<DynamicModule> {
    const providers = [ConfigService];
    return Promise.resolve({ module: ConfigModule, global: isGlobal, providers, exports: providers });
  }
}

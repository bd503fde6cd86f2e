import { IsIn, IsOptional } from 'class-validator';
import { STRATEGY_NAMES, type StrategyName } from '../../flash-sale/strategies/strategy-names.js';

/** Body of a button. Only a new sale reads its strategy. */
export class OpenSaleDto {
  @IsOptional()
  @IsIn(STRATEGY_NAMES)
  strategy?: StrategyName;
}

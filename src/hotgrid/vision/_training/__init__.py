"""Training, evaluation, prediction and export of image models."""

from ._column import (
    ColumnBatches as ColumnBatches,
    KeyedImages as KeyedImages,
    StreamedImages as StreamedImages,
    image_column as image_column,
)
from ._evaluate import (
    ImageScore as ImageScore,
    WrongSample as WrongSample,
    score_images as score_images,
)
from ._export import ExportCheck as ExportCheck, export_model as export_model
from ._folder import (
    ImageModel as ImageModel,
    load_image_model as load_image_model,
    save_image_model as save_image_model,
)
from ._optimizer import recipe_optimizer as recipe_optimizer
from ._pictures import (
    confusion_picture as confusion_picture,
    prediction_picture as prediction_picture,
    worst_picture as worst_picture,
)
from ._predict import (
    Prediction as Prediction,
    predict_images as predict_images,
    read_images as read_images,
)
from ._recipe import VisionRecipe as VisionRecipe
from ._recipes import (
    find_recipe as find_recipe,
    read_recipe as read_recipe,
    recipe_names as recipe_names,
)
from ._sources import ImageData as ImageData, open_images as open_images
from ._train import (
    TrainedImages as TrainedImages,
    VisionRun as VisionRun,
    train_images as train_images,
)

"""vision: models of images, augmentation, training.

`create_model` makes a model by name. An `AugmentStage` is a step of augmentation as data;
`Augmentation` applies one to a batch on its device.
"""
